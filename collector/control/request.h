// collector/control/request.h
//
// What a request on the control socket asks for, checked: who dispatches it needs to look at nothing
// twice.
//
// Thread safety: pure functions.

#ifndef GMT_COLLECTOR_CONTROL_REQUEST_H_
#define GMT_COLLECTOR_CONTROL_REQUEST_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace gmt::control {

inline constexpr size_t kMaxNameBytes = 200;  // of a mark or snapshot
inline constexpr uint32_t kMinIntervalMs = 100, kMaxIntervalMs = 60'000, kUsualIntervalMs = 1'000;
inline constexpr uint32_t kMaxRows = 256, kUsualRows = 20;

// INVALID_ARGUMENT, with a sentence for the reply's `error`, for anything that cannot be done as it
// stands. Fills defaults in. Even of a refused request *id is what it says its id is, 0 where that
// cannot be told, and *other_version tells whether a version is why.
absl::StatusOr<Request> ParseRequest(std::string_view message, uint64_t* id, bool* other_version);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_REQUEST_H_
