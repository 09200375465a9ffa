#include "analysis/trace/reconciliation.h"

#include <algorithm>
#include <tuple>

namespace gmt::analysis {

void TotalCheck::NoteDifference() {
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
