#include "interop/torch_feed.h"

#include <algorithm>
#include <tuple>

namespace gmt::interop {

using analysis::Mapping;
using analysis::Step;

TorchFeed::TorchFeed(const analysis::Trace& trace) : trace_(trace) {
  for (uint32_t i = 0; i < trace.mappings.size(); ++i) AddMapping(i);
  for (size_t i = 0; i < trace.failed.size(); ++i) {
    Add(TorchItem::kFailed, i, trace.failed[i].step, trace.failed[i].t_ns);
  }
  for (size_t i = 0; i < trace.snapshots.size(); ++i) {
    Add(TorchItem::kSnapshot, i, trace.snapshots[i].step, trace.snapshots[i].t_ns);
  }
  std::stable_sort(asides_.begin(), asides_.end(), [](const TorchItem& a, const TorchItem& b) {
    return std::tuple(a.step, a.t_ns) < std::tuple(b.step, b.t_ns);
  });
}

void TorchFeed::Add(TorchItem::Kind kind, size_t index, Step step, int64_t t_ns) {
  asides_.push_back({kind, static_cast<uint32_t>(index), step, t_ns});
}

void TorchFeed::AddMapping(uint32_t index) {
  const Mapping& mapping = trace_.mappings[index];
  if (mapping.physical == analysis::kNoRow) return;
  Add(TorchItem::kMapped, index, mapping.birth, trace_.TimeOf(mapping.birth));
  if (mapping.death != analysis::kNever) {
    Add(TorchItem::kUnmapped, index, mapping.death, trace_.TimeOf(mapping.death));
  }
}

}  // namespace gmt::interop
