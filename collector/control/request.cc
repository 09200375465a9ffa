#include "collector/control/request.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "collector/control/framing.h"

namespace gmt::control {
namespace {

absl::Status CheckName(std::string_view name, bool may_be_empty) {
  if (name.empty() && !may_be_empty) return absl::InvalidArgumentError("the name is empty");
  if (name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name is longer than ", kMaxNameBytes, " bytes"));
  }
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control))
    return absl::InvalidArgumentError("the name has control characters");
  return absl::OkStatus();
}

absl::Status CheckSubscribe(Subscribe* subscribe) {
  if (!Subscribe::What_IsValid(subscribe->what()) || !TopOrder_IsValid(subscribe->order()))
    return absl::InvalidArgumentError("this collector cannot report that");
  if (subscribe->interval_ms() == 0) subscribe->set_interval_ms(kDefaultIntervalMs);
  if (subscribe->rows() == 0) subscribe->set_rows(kDefaultRows);
  if (subscribe->interval_ms() < kMinIntervalMs || subscribe->interval_ms() > kMaxIntervalMs) {
    return absl::InvalidArgumentError(
        absl::StrCat("the interval must be from ", kMinIntervalMs, " to ", kMaxIntervalMs, " ms"));
  }
  if (subscribe->rows() > kMaxRows)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxRows, " rows are requested"));
  return absl::OkStatus();
}

absl::Status Check(Request* request) {
  switch (request->what_case()) {
    case Request::kSnapshot:
      return CheckName(request->snapshot().name(), /*may_be_empty=*/true);
    case Request::kMark:
      return CheckName(request->mark().name(), /*may_be_empty=*/false);
    case Request::kSubscribe:
      return CheckSubscribe(request->mutable_subscribe());
    case Request::kStatus:
    case Request::kOptions:
    case Request::kDetach:
      return absl::OkStatus();
    case Request::WHAT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("this collector does not know this request");
}

}  // namespace

absl::StatusOr<Request> ParseRequest(std::string_view message, uint64_t* id, bool* other_version) {
  *id = 0;
  *other_version = false;
  Request request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return absl::InvalidArgumentError("this is not a request");
  *id = request.id();
  if (request.version() != kVersion) {
    *other_version = true;
    return absl::InvalidArgumentError(absl::StrCat("the request is of version ", request.version(),
                                                   " of the control protocol; this collector "
                                                   "speaks version ",
                                                   kVersion));
  }
  if (absl::Status status = Check(&request); !status.ok()) return status;
  return request;
}

}  // namespace gmt::control
