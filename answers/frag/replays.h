// answers/frag/replays.h
//
// What PyTorch would have reserved otherwise, at the moment at which `frag` looks. It comes from
// the replay of `whatif` (analysis/whatif/replay.h); the estimate in Fragmentation comes from the
// layout.
//
// Thread safety: pure function. Cost: up to three replays for each device.

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
  uint64_t recorded_peak_bytes = 0;            // the peak of the replay with the recorded settings
  std::vector<analysis::VaryingSite> varying;  // code that requests varying sizes
  // The bytes reserved if each of these requests had the largest size of its code. nullopt if there
  // is no such code, or no replay that agrees with the recording.
  std::optional<uint64_t> padded;
};

struct DeviceFragmentation {
  analysis::Fragmentation found;
  FragReplays replays;
};

std::vector<DeviceFragmentation> ReplayEach(const analysis::Examination& examination,
                                            std::vector<analysis::Fragmentation> found);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_REPLAYS_H_
