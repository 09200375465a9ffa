#include "analysis/trace/reconciliation.h"

#include <algorithm>
#include <tuple>

namespace gmt::analysis {

void TotalCheck::Compare(int64_t t_ns, uint64_t ours, uint64_t theirs) {
  ++compared;
  last = {t_ns, ours, theirs};
  if (ours == theirs) return;
  if (different++ == 0) first = last;
  if (last.bytes() > largest.bytes()) largest = last;
}

Reconciler::Sums& Reconciler::Find(uint64_t key) {
  last_key_ = key;
  last_ = &sums_[key];
  return *last_;
}

void Reconciler::ForgetComparisons() {
  for (auto& [key, sums] : sums_) sums.allocated = sums.reserved = TotalCheck();
}

void Reconciler::Compare(uint32_t heap, const format::Event& event) {
  const auto device = static_cast<int32_t>(event.device);
  Sums& sums = Of(heap, device);
  if (event.has(format::kHasTotalAllocated)) {
    sums.allocated.Compare(event.t_ns, sums.blocks, event.total_allocated);
  }
  if (event.has(format::kHasTotalReserved))
    sums.reserved.Compare(event.t_ns, SegmentsOf(device), event.total_reserved);
}

std::vector<Reconciliation> Reconciler::Result(const std::vector<std::string>& heaps) const {
  std::vector<Reconciliation> all;
  for (const auto& [key, sums] : sums_) {
    if (sums.allocated.compared == 0 && sums.reserved.compared == 0) continue;
    all.push_back(
        {heaps[key >> 32], static_cast<int32_t>(key & UINT32_MAX), sums.allocated, sums.reserved});
  }
  std::sort(all.begin(), all.end(), [](const Reconciliation& a, const Reconciliation& b) {
    return std::tie(a.heap, a.device) < std::tie(b.heap, b.device);
  });
  return all;
}

}  // namespace gmt::analysis
