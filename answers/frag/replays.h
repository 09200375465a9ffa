// answers/frag/replays.h
//
// What PyTorch would have reserved otherwise, at the moment at which `frag` looks. It comes from
// the replay of `whatif` (analysis/whatif/replay.h); the estimate in Fragmentation comes from the
// layout.
//
// Thread safety: pure function. Cost: up to three replays.

#ifndef GMT_ANSWERS_FRAG_REPLAYS_H_
#define GMT_ANSWERS_FRAG_REPLAYS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/whatif/varying_sizes.h"

namespace gmt::answers {

struct Reserved {
  uint64_t bytes = 0;       // at the moment
  uint64_t peak_bytes = 0;  // at any moment
};

struct FragReplays {
  // With expandable segments. nullopt if all segments are expandable, or if there is no replay that
  // agrees with the recording.
  std::optional<Reserved> expandable;
  uint64_t recorded_peak_bytes = 0;  // of the replay with the recorded settings
  // Code that requests varying sizes, and the bytes reserved if each request had the largest size
  // of its code; nullopt likewise, or if there is no such code.
  std::vector<analysis::VaryingSite> varying;
  std::optional<uint64_t> padded;
};

FragReplays Replay(const analysis::Examination& examination, const analysis::Fragmentation& found);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_REPLAYS_H_
