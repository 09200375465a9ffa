#include "viewer/questions/live_samples.h"

#include <utility>

namespace gmt::viewer {

analysis::Step LiveSamples::EventOf(const analysis::Trace& trace, uint32_t i, uint32_t parts) {
  const uint64_t last = trace.last_step();
  return static_cast<analysis::Step>((2 * uint64_t{i} + 1) * last / (2 * uint64_t{parts}));
}

void LiveSamples::Choose(uint32_t parts) {
  if (parts == parts_) return;
  parts_ = parts;
  ids_ = 0;
  samples_.clear();
}

void LiveSamples::Keep(uint32_t part, std::vector<analysis::RowId> rows) {
  if (part != samples_.size() || ids_ + rows.size() > kMaxIds) return;
  ids_ += rows.size();
  samples_.push_back(std::move(rows));
}

}  // namespace gmt::viewer
