// interop/pprof/recording_profile.h
//
// The state of a recording at one moment as a profile for `go tool pprof` and compatible tools
// (pprof_writer.h): what is held at that moment, and what has been allocated until then, by stack.
//
// For each device only one layer (docs/architecture.md, "Words") is included, so that values add
// up: the blocks of a framework's allocator if it has any, otherwise driver memory. The innermost
// frames, which are the allocator's own, are left out.
//
// Thread safety: pure function. Cost: a walk over the rows, and the stacks that allocated.

#ifndef GMT_INTEROP_PPROF_RECORDING_PROFILE_H_
#define GMT_INTEROP_PPROF_RECORDING_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"

namespace gmt::interop {

struct ProfileSelection {
  analysis::At at;                // for each device, which has its own peak
  std::optional<int32_t> device;  // only this device
  std::string heap;               // this heap of all devices; empty: as above, without host memory
};

struct RecordingProfile {
  std::string gzipped;
  uint64_t samples = 0;
  int64_t inuse_bytes = 0;
  // The history of a bounded recording begins late: alloc_* lacks earlier allocations.
  bool lacks_allocations_before = false;
};

// Returns NOT_FOUND if the recording has no such moment, device or heap.
absl::StatusOr<RecordingProfile> MakeProfile(const analysis::Examination& examination,
                                             const ProfileSelection& selection);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PPROF_RECORDING_PROFILE_H_
