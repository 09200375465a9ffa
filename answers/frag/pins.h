// answers/frag/pins.h
//
// The live blocks that prevent free memory from being released, in brief and as JSON.
//
// Thread safety: one thread at a time, because stacks are described on demand.

#ifndef GMT_ANSWERS_FRAG_PINS_H_
#define GMT_ANSWERS_FRAG_PINS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/stacks/source_line.h"

namespace gmt::answers {

// The blocks that together pin nine tenths of the pinned memory, starting with those that pin most.
struct MainPins {
  uint64_t blocks = 0, block_bytes = 0, pinned_bytes = 0;
};
MainPins MainPinsOf(const analysis::Trace& trace, const std::vector<analysis::Pin>& pins);

// Returns the first `top` groups as an array.
nlohmann::ordered_json PinsJson(const std::vector<analysis::PinGroup>& groups,
                                const analysis::Examination& examination,
                                analysis::SourceLines& sources, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_PINS_H_
