#include "analysis/trace/before_attach.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace gmt::analysis {

bool WasAttached(const Trace& trace) {
  const Rows& rows = trace.rows;
  const RowId count = rows.count();
  for (RowId row = 0; row < count; ++row) {
    if ((rows.flags[row] & kRowReportedBefore) != 0) return true;
  }
  return false;
}

std::vector<HeldBefore> FindHeldBefore(const Trace& trace) {
  const Rows& rows = trace.rows;
  std::map<std::pair<int32_t, uint32_t>, HeldBefore> found;
  bool any_reported = false;
  const RowId count = rows.count();
  for (RowId row = 0; row < count; ++row) {
    const uint16_t flags = rows.flags[row];
    const bool reported = (flags & kRowReportedBefore) != 0;
    if (!reported && (flags & kRowUnreportedBefore) == 0) continue;
    any_reported |= reported;
    if (rows.IsRegion(row) || (flags & kRowHoldsBlocks) != 0) continue;
    HeldBefore& of = found[{rows.device[row], rows.heap[row]}];
    const uint64_t size = rows.size[row];
    if (!reported) {
      of.unknown_freed_bytes += size;
      ++of.unknown_freed_blocks;
      continue;
    }
    of.bytes += size;
    ++of.blocks;
    if (rows.death[row] == kNever) continue;
    of.freed_bytes += size;
    ++of.freed_blocks;
  }
  std::vector<HeldBefore> all;
  if (!any_reported) return all;
  for (auto& [place, of] : found) {
    of.device = place.first;
    of.heap = trace.heaps[std::min<size_t>(place.second, trace.heaps.size() - 1)];
    all.push_back(std::move(of));
  }
  return all;
}

LikeBefore FindLikeBefore(const Trace& trace, const std::vector<uint32_t>& stacks) {
  const Rows& rows = trace.rows;
  const absl::flat_hash_set<uint32_t> wanted(stacks.begin(), stacks.end());
  using Class = std::tuple<int32_t, uint32_t, uint64_t>;
  absl::flat_hash_set<Class> sizes;
  const auto class_of = [&](RowId row) {
    return Class(rows.device[row], rows.heap[row], rows.size[row]);
  };
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.stack[row] != 0 && wanted.contains(rows.stack[row])) sizes.insert(class_of(row));
  }
  LikeBefore like;
  for (RowId row = 0; row < rows.count(); ++row) {
    const bool is_held = (rows.flags[row] & kRowReportedBefore) != 0 && rows.death[row] == kNever;
    if (!is_held || !sizes.contains(class_of(row))) continue;
    like.bytes += rows.size[row];
    ++like.blocks;
  }
  return like;
}

}  // namespace gmt::analysis
