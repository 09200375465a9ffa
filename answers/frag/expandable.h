// answers/frag/expandable.h
//
// What PyTorch would have reserved with expandable segments, at the moment at which `frag` looks.
// It comes from the replay of `whatif` (analysis/whatif/replay.h); the estimate in Fragmentation
// comes from the layout.
//
// Thread safety: pure function. Cost: two replays.

#ifndef GMT_ANSWERS_FRAG_EXPANDABLE_H_
#define GMT_ANSWERS_FRAG_EXPANDABLE_H_

#include <cstdint>
#include <optional>

#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"

namespace gmt::answers {

struct Expandable {
  uint64_t reserved_bytes = 0;  // at the moment
  uint64_t peak_bytes = 0;      // the most of it at any moment
  // The most without expandable segments, in a replay as well.
  uint64_t recorded_peak_bytes = 0;
};

// Returns nullopt if all segments are expandable, or if there is no replay that agrees with the
// recording.
std::optional<Expandable> ReservedIfExpandable(const analysis::Examination& examination,
                                               const analysis::Fragmentation& found);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_EXPANDABLE_H_
