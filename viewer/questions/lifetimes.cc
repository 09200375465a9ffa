#include "viewer/questions/lifetimes.h"

#include <algorithm>
#include <utility>

#include "analysis/median.h"
#include "viewer/questions/table.h"

namespace gmt::viewer {

std::optional<int64_t> LifetimeOf(const analysis::Trace& trace, analysis::RowId row) {
  const analysis::Step birth = trace.rows.birth[row], death = trace.rows.death[row];
  if (birth == 0 || death == analysis::kNever) return std::nullopt;
  int64_t lifetime = 0;  // times in a damaged file may be arbitrary
  if (__builtin_sub_overflow(trace.TimeOf(death), trace.TimeOf(birth), &lifetime)) {
    return std::nullopt;
  }
  return std::max<int64_t>(lifetime, 0);
}

LifetimeMedians::LifetimeMedians(uint64_t blocks, const std::vector<uint32_t>& groups)
    : stride_(blocks / kMaxLifetimes + 1) {
  for (const uint32_t group : groups) lifetimes_[group];
}

void LifetimeMedians::Add(uint32_t group, const analysis::Trace& trace, analysis::RowId row) {
  if (seen_++ % stride_ != 0) return;
  const auto found = lifetimes_.find(group);
  if (found == lifetimes_.end()) return;
  if (const std::optional<int64_t> lifetime = LifetimeOf(trace, row)) {
    found->second.push_back(*lifetime);
  }
}

absl::flat_hash_map<uint32_t, int64_t> LifetimeMedians::Find() && {
  absl::flat_hash_map<uint32_t, int64_t> medians;
  for (auto& [group, lifetimes] : lifetimes_) {
    if (!lifetimes.empty()) medians[group] = analysis::LowerMedian(std::move(lifetimes));
  }
  return medians;
}

}  // namespace gmt::viewer
