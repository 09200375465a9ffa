// collector/testing/control_fixture.h
//
// For tests: a client that sends arbitrary bytes.

#ifndef GMT_COLLECTOR_TESTING_CONTROL_FIXTURE_H_
#define GMT_COLLECTOR_TESTING_CONTROL_FIXTURE_H_

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "collector/control/framing.h"
#include "collector/sessions/socket_path.h"
#include "collector/sessions/unix_socket.h"
#include "proto/control.pb.h"

namespace gmt::control {

// How long a test waits for an expected event; not a performance limit.
inline constexpr int kHangMs = 120'000;

class RawClient {
 public:
  explicit RawClient(const std::string& session) {
    const auto fd = ConnectTo(SocketPathOf(session), std::chrono::milliseconds(kHangMs));
    if (fd.ok()) fd_ = *fd;
  }
  ~RawClient() { Leave(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void Leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  // Sends as much as the other side accepts immediately.
  void Send(std::string_view bytes) {
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Returns false if the other side has closed the connection.
  bool Read(std::string* message) {
    while (!reader_.Next(message)) {
      pollfd polled = {fd_, POLLIN, 0};
      char buffer[4096];
      if (poll(&polled, 1, kHangMs) <= 0) return false;
      const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
      if (count <= 0) return false;
      reader_.Feed({buffer, static_cast<size_t>(count)});
    }
    return true;
  }
  Reply ReadReply() {
    std::string message;
    Reply reply;
    if (!Read(&message) || !reply.ParseFromString(message)) reply.set_error("(closed)");
    return reply;
  }

 private:
  int fd_ = -1;
  FrameReader reader_{kMaxReplyBytes};
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_TESTING_CONTROL_FIXTURE_H_
