#include "collector/control/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/sessions/socket_path.h"
#include "collector/sessions/unix_socket.h"
#include "format/printable.h"

namespace gmt::control {
namespace {

using SteadyClock = std::chrono::steady_clock;

int MillisecondsUntil(SteadyClock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& session,
                                                        std::chrono::milliseconds patience) {
  const std::string socket = SocketPathOf(session);
  const auto end = SteadyClock::now() + patience;
  absl::StatusOr<int> fd = ConnectTo(socket, patience);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<Client> client(new Client(*fd, socket));
  absl::StatusOr<std::string> message =
      client->ReadMessage(std::chrono::milliseconds(MillisecondsUntil(end)));
  if (!message.ok()) return message.status();
  Hello hello;
  if (!hello.ParseFromString(*message) || hello.version() == 0) {
    Reply refusal;
    if (refusal.ParseFromString(*message) && !refusal.error().empty())
      return absl::PermissionDeniedError(absl::StrCat(socket, ": ", refusal.error()));
    return absl::DataLossError(absl::StrCat(socket, ": what answers is not a collector"));
  }
  if (hello.version() != kVersion) {
    return absl::UnimplementedError(
        absl::StrCat(socket, ": the collector (gpumemtrace ", hello.release(), ", process ",
                     hello.collector_pid(), ") speaks version ", hello.version(),
                     " of the control protocol, this program version ", kVersion,
                     ". Use the gpumemtrace of that release"));
  }
  client->hello_ = std::move(hello);
  return client;
}

Client::~Client() { close(fd_); }

absl::Status Client::DoesNotAnswer() const {
  return absl::DeadlineExceededError(absl::StrCat(socket_, ": the collector does not answer"));
}

absl::Status Client::SendRequest(Request* request) {
  if (is_broken_) return DoesNotAnswer();
  request->set_version(kVersion);
  request->set_id(++last_id_);
  const std::string frame = Framed(request->SerializeAsString());
  for (size_t at = 0; at < frame.size();) {
    const ssize_t sent = send(fd_, frame.data() + at, frame.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      is_broken_ = at > 0;
      return DoesNotAnswer();
    }
    if (sent < 0) return absl::UnavailableError(absl::StrCat(socket_, ": the collector has ended"));
    at += static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Client::ReadMessage(std::chrono::milliseconds patience) {
  const auto end = SteadyClock::now() + patience;
  std::string message;
  while (!reader_.Next(&message)) {
    if (reader_.broken())
      return absl::DataLossError(absl::StrCat(socket_, ": what answers is not a collector"));
    pollfd polled = {fd_, POLLIN, 0};
    const int ready = poll(&polled, 1, MillisecondsUntil(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return DoesNotAnswer();
    char buffer[65536];
    const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return absl::UnavailableError(absl::StrCat(socket_, ": the collector has ended"));
    reader_.Feed({buffer, static_cast<size_t>(count)});
  }
  return message;
}

void Client::MakeStringsPrintable() {
  printable_ = true;
  format::MakePrintable(&hello_);
}

absl::StatusOr<Reply> Client::ReadReply(std::chrono::milliseconds patience) {
  absl::StatusOr<std::string> message = ReadMessage(patience);
  if (!message.ok()) return message.status();
  Reply reply;
  if (!reply.ParseFromString(*message))
    return absl::DataLossError(absl::StrCat(socket_, ": what answers is not a collector"));
  if (printable_) format::MakePrintable(&reply);
  return reply;
}

absl::StatusOr<Reply> Client::Ask(Request request, std::chrono::milliseconds patience) {
  if (absl::Status status = SendRequest(&request); !status.ok()) return status;
  const auto end = SteadyClock::now() + patience;
  while (true) {
    absl::StatusOr<Reply> reply = ReadReply(std::chrono::milliseconds(MillisecondsUntil(end)));
    if (!reply.ok()) return reply.status();
    if (reply->id() != request.id()) continue;  // replies to an earlier request that timed out
    if (!reply->error().empty()) return absl::FailedPreconditionError(reply->error());
    return reply;
  }
}

absl::Status Client::Subscribe(const control::Subscribe& subscription,
                               const std::function<bool(const Reply&)>& take) {
  Request request;
  *request.mutable_subscribe() = subscription;
  if (absl::Status status = SendRequest(&request); !status.ok()) return status;
  const auto patience = kPatience + std::chrono::milliseconds(subscription.interval_ms());
  while (true) {
    const absl::StatusOr<Reply> reply = ReadReply(patience);
    if (!reply.ok()) return reply.status();
    if (reply->id() == request.id() && !take(*reply)) return absl::OkStatus();
  }
}

absl::Status Client::WaitForEnd(std::chrono::milliseconds patience) {
  const auto end = SteadyClock::now() + patience;
  while (true) {
    absl::StatusOr<std::string> message =
        ReadMessage(std::chrono::milliseconds(MillisecondsUntil(end)));
    if (absl::IsUnavailable(message.status())) return absl::OkStatus();
    if (!message.ok()) return message.status();
  }
}

}  // namespace gmt::control
