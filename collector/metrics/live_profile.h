// collector/metrics/live_profile.h
//
// /debug/pprof/gpu: the live set of a running process by stack, or its change between two moments,
// for `go tool pprof`.
//
// Thread safety: pure functions.

#ifndef GMT_COLLECTOR_METRICS_LIVE_PROFILE_H_
#define GMT_COLLECTOR_METRICS_LIVE_PROFILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "collector/mailbox/mailbox.h"
#include "format/definitions.h"

namespace gmt::metrics {

// Returns a gzipped profile. `copy` must have sites. `before`: null, or an earlier copy of the same
// recording. With it, values are differences; those of live memory may be negative.
absl::StatusOr<std::string> LiveProfile(const control::Copy& copy, const control::Copy* before,
                                        const format::Definitions& names, int64_t now_unix_ns);

}  // namespace gmt::metrics

#endif  // GMT_COLLECTOR_METRICS_LIVE_PROFILE_H_
