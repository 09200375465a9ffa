// collector/control/client.h
//
// Client: sends requests to a running collector (docs/control.md).
//
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(session.path);
//   Request request;
//   request.mutable_snapshot()->set_name("before");
//   absl::StatusOr<Reply> reply = (*client)->Ask(request);
//
// Errors: NOT_FOUND: no collector serves the session. PERMISSION_DENIED: it belongs to another
// user. UNIMPLEMENTED: it uses another protocol version. FAILED_PRECONDITION: it refused the
// request; the message is its reason. UNAVAILABLE: it has ended. DEADLINE_EXCEEDED: it does not
// answer.
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_CONTROL_CLIENT_H_
#define GMT_COLLECTOR_CONTROL_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collector/control/framing.h"
#include "proto/control.pb.h"

namespace gmt::control {

class Client {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // `session`: path of the session's file. `patience`: limit for the connection and the first
  // message, and for each later send.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& session, std::chrono::milliseconds patience = kPatience);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Makes all text of the collector safe to print (format/printable.h), in hello() and in later
  // replies.
  void MakeStringsPrintable();

  const Hello& hello() const { return hello_; }

  // Sends a request and waits for its reply. Fills in version and id. Not for Subscribe.
  absl::StatusOr<Reply> Ask(Request request, std::chrono::milliseconds patience = kPatience);

  // Passes replies to `take` until it returns false (OK) or the recording ends (UNAVAILABLE).
  // Replies that contain only an error are passed as well.
  absl::Status Subscribe(const control::Subscribe& subscription,
                         const std::function<bool(const Reply&)>& take);

  // Waits until the collector closes the connection. After a detach this means that the recording
  // is complete.
  absl::Status WaitForEnd(std::chrono::milliseconds patience);

 private:
  Client(int fd, std::string socket) : fd_(fd), socket_(std::move(socket)) {}

  absl::Status SendRequest(Request* request);
  absl::StatusOr<Reply> ReadReply(std::chrono::milliseconds patience);
  absl::StatusOr<std::string> ReadMessage(std::chrono::milliseconds patience);
  absl::Status DoesNotAnswer() const;

  int fd_;
  std::string socket_;
  FrameReader reader_{kMaxReplyBytes};
  Hello hello_;
  bool printable_ = false;
  uint64_t last_id_ = 0;
  bool is_broken_ = false;  // a request was sent only in part, so later ones would be misread
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_CLIENT_H_
