// interop/pprof/recording_profile.h
//
// The state of a recording at one moment as a profile for `go tool pprof` and compatible tools
// (pprof_writer.h).
//
// The device and the heap of a sample are its labels.
//
// Thread safety: pure function. Cost: a walk over the rows, and the stacks that allocated.

#ifndef GMT_INTEROP_PPROF_RECORDING_PROFILE_H_
#define GMT_INTEROP_PPROF_RECORDING_PROFILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "interop/profile/stack_profile.h"

namespace gmt::interop {

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
