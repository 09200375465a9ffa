// interop/profile/stack_profile.h
//
// The state of a recording at one moment or at several, by stack: what is held at that moment, and
// what has been allocated until then. For each device only one layer is included
// (layer_selection.h), so that values add up. Formats of profiles are written from it.
//
// Thread safety: pure functions. Cost: a walk over the rows, and for several moments memory for
// each stack at each of them.

#ifndef GMT_INTEROP_PROFILE_STACK_PROFILE_H_
#define GMT_INTEROP_PROFILE_STACK_PROFILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/stacks/frames.h"

namespace gmt::interop {

struct ProfileSelection {
  analysis::At at;                // for each device, which has its own peak
  std::optional<int32_t> device;  // only this device
  std::string heap;               // this heap of all devices; empty: as in layer_selection.h
};

struct StackProfile {
  struct Sample {
    int32_t device = 0;
    uint32_t heap = 0;   // index of Trace::heaps
    uint32_t stack = 0;  // 0 if unknown
    int64_t alloc_objects = 0, alloc_space = 0, inuse_objects = 0, inuse_space = 0;
  };
  std::vector<Sample> samples;                    // ordered by device, heap and stack
  std::map<int32_t, analysis::Instant> instants;  // by device
  bool of_blocks = false;                         // LayerSelection::of_blocks()
  // The history of a bounded recording begins late: alloc_* lacks earlier allocations.
  bool lacks_allocations_before = false;
};

// Returns NOT_FOUND if the recording has no such moment, device or heap.
absl::StatusOr<StackProfile> MakeStackProfile(const analysis::Examination& examination,
                                              const ProfileSelection& selection);

// The states of one device.
struct StackHistory {
  int32_t device = 0;
  std::vector<analysis::Instant> instants;  // in order
  // By heap and stack: a sample for each instant.
  std::vector<std::vector<StackProfile::Sample>> sites;
};

// Returns for each device the states at its peak, at snapshots, at the failed allocation that
// matters most, at the peaks of some steps of the training loop, and at the end: at most
// kMaxInstants, and of snapshots the newest.
inline constexpr size_t kMaxInstants = 32;
std::vector<StackHistory> MakeStackHistories(const analysis::Examination& examination);

// Returns the frames of a stack without those of the allocator, innermost first. An unknown stack
// has the one frame "(no stack)".
std::vector<analysis::FrameText> ProfileFrames(const analysis::Examination& examination,
                                               uint32_t stack);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PROFILE_STACK_PROFILE_H_
