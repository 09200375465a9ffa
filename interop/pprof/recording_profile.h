// interop/pprof/recording_profile.h
//
// What a recording says of one moment, as a profile for `go tool pprof` and its descendants
// (pprof_writer.h): what is held at that moment, and what has been allocated until then, by stack.
//
// Of the layers (docs/architecture.md, "Words") each device has one, so that values add up: the blocks of
// a framework's allocator if it has any, else memory of the driver. The frames of the allocator itself,
// innermost, are left out.
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
  analysis::At at;                // on each device: its peak is its own
  std::optional<int32_t> device;  // only this one
  std::string heap;               // of all devices this one; empty: as above, without host memory
};

struct RecordingProfile {
  std::string gzipped;
  uint64_t samples = 0;
  int64_t inuse_bytes = 0;
  // The history of a bounded recording begins late: alloc_* lacks what came before.
  bool lacks_allocations_before = false;
};

// NOT_FOUND if the recording has no such moment, device or heap.
absl::StatusOr<RecordingProfile> MakeProfile(const analysis::Examination& examination,
                                             const ProfileSelection& selection);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PPROF_RECORDING_PROFILE_H_
