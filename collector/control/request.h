// collector/control/request.h
//
// Parses and validates requests of the control socket, so that no later code needs to check them.
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
inline constexpr uint32_t kMinIntervalMs = 100, kMaxIntervalMs = 60'000, kDefaultIntervalMs = 1'000;
inline constexpr uint32_t kMaxRows = 256, kDefaultRows = 20;

// Returns the request with defaults filled in. Returns INVALID_ARGUMENT, with a sentence for the
// reply's `error`, if it is invalid. *id is the request's id even then; 0 if it cannot be parsed.
// *other_version: the request has another protocol version.
absl::StatusOr<Request> ParseRequest(std::string_view message, uint64_t* id, bool* other_version);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_REQUEST_H_
