// collector/control/client.h
//
// Client: what a program says to a running collector (docs/control.md).
//
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(session.path);
//   Request request;
//   request.mutable_snapshot()->set_name("before");
//   absl::StatusOr<Reply> reply = (*client)->Ask(request);
//
// Errors: NOT_FOUND no collector serves the session; PERMISSION_DENIED it is another user's;
// UNIMPLEMENTED it speaks another version; FAILED_PRECONDITION the collector's own words why not;
// UNAVAILABLE it ended meanwhile; DEADLINE_EXCEEDED it does not answer.
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

  // `session`: path of the session's file. `patience`: until it has answered, and of each send later.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& session, std::chrono::milliseconds patience = kPatience);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Hello& hello() const { return hello_; }

  // Fills in version and id. For everything but Subscribe.
  absl::StatusOr<Reply> Ask(Request request, std::chrono::milliseconds patience = kPatience);

  // Until `take` returns false (OK) or the recording ends (UNAVAILABLE). A reply that says why there
  // is none comes to `take` as well.
  absl::Status Subscribe(const control::Subscribe& wish,
                         const std::function<bool(const Reply&)>& take);

  // Until the collector has closed, for whoever asked it to end: then the recording is complete.
  absl::Status WaitForEnd(std::chrono::milliseconds patience);

 private:
  Client(int fd, std::string socket) : fd_(fd), socket_(std::move(socket)) {}

  absl::Status SendRequest(Request* request);
  absl::StatusOr<std::string> ReadMessage(std::chrono::milliseconds patience);
  absl::Status DoesNotAnswer() const;

  int fd_;
  std::string socket_;
  FrameReader reader_{kMaxReplyBytes};
  Hello hello_;
  uint64_t last_id_ = 0;
  bool is_cut_ = false;  // a request went out in part: nothing that follows would be understood
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_CLIENT_H_
