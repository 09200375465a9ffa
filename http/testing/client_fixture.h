// http/testing/client_fixture.h
//
// For tests: a client that knows nothing of HTTP and sends the given bytes.

#ifndef GMT_HTTP_TESTING_CLIENT_FIXTURE_H_
#define GMT_HTTP_TESTING_CLIENT_FIXTURE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#if defined(__SANITIZE_THREAD__)
// libevent removes a descriptor from epoll after closing it, when its number may already belong to
// another socket. That socket is in no epoll set, so the call fails. It is not a data race.
extern "C" inline __attribute__((used)) const char* __tsan_default_suppressions() {
  return "called_from_lib:libevent_core";
}
#endif

namespace gmt::http {

// How long a test waits for an expected event; never a measure of speed.
inline constexpr int kHangMs = 120'000;

class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Close();
  }
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  // Closes with a reset instead of an orderly shutdown, as when a client closes with unread bytes.
  void Reset() {
    const linger now = {1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }
  void Send(const std::string& bytes) {
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void Get(const std::string& path, const std::string& headers = "") {
    Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  // Reads until `what` has arrived or the server closes the connection.
  std::string ReadTo(const std::string& what) {
    while (read_.find(what) == std::string::npos) {
      pollfd polled = {fd_, POLLIN, 0};
      if (poll(&polled, 1, kHangMs) <= 0) return read_ + " (hangs)";
      char buffer[4096];
      const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
      if (count <= 0) return read_;
      read_.append(buffer, static_cast<size_t>(count));
    }
    return std::exchange(read_, "");
  }
  std::string ReadAll() { return ReadTo("never sent by anyone"); }

 private:
  int fd_;
  std::string read_;
};

}  // namespace gmt::http

#endif  // GMT_HTTP_TESTING_CLIENT_FIXTURE_H_
