#include "analysis/whatif/varying_sizes.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kLargestOfSmallPool = kMiB;
constexpr uint64_t kFewestSizes = 3, kTimesOfAStep = 3;
constexpr uint64_t kFewestOwnSizes = 8;  // without steps

struct Requests {
  VaryingSite site;
  absl::flat_hash_set<uint64_t> sizes, in_step;
  size_t step = SIZE_MAX;
  uint64_t most_in_step = 0;
};

bool IsCounted(const Rows& rows, RowId row, int32_t device) {
  return rows.IsBlock(row) && rows.device[row] == device && rows.birth[row] != 0 &&
         rows.stack[row] != 0 && rows.size[row] > kLargestOfSmallPool;
}

bool Varies(const Requests& requests, bool has_steps) {
  const uint64_t sizes = requests.sizes.size();
  if (!has_steps) return sizes >= kFewestOwnSizes && 2 * sizes >= requests.site.requests;
  return sizes >= kFewestSizes && sizes >= kTimesOfAStep * requests.most_in_step;
}

}  // namespace

std::vector<VaryingSite> FindVaryingSites(const Examination& examination, int32_t device,
                                          Step step) {
  const Rows& rows = examination.trace().rows;
  const std::vector<Cycle>& cycles = examination.cycles().cycles;
  const bool has_steps = cycles.size() >= kFewestSizes && !examination.cycles().inferred;
  absl::flat_hash_map<uint32_t, Requests> by_stack;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!IsCounted(rows, row, device) || rows.birth[row] > step) continue;
    Requests& of = by_stack[rows.stack[row]];
    const uint64_t size = rows.size[row];
    const auto cycle = std::lower_bound(cycles.begin(), cycles.end(), rows.birth[row],
                                        [](const Cycle& c, Step birth) { return c.end < birth; });
    const auto number = static_cast<size_t>(cycle - cycles.begin());
    if (number != of.step) of.in_step.clear();
    of.step = number;
    of.in_step.insert(size);
    of.most_in_step = std::max<uint64_t>(of.most_in_step, of.in_step.size());
    of.sizes.insert(size);
    if (of.site.forward_stack == 0) of.site.forward_stack = rows.forward_stack[row];
    of.site.smallest = of.site.requests == 0 ? size : std::min(of.site.smallest, size);
    of.site.largest = std::max(of.site.largest, size);
    ++of.site.requests;
    if (rows.HeldAfter(row, step)) of.site.held_bytes += size;
  }
  std::vector<VaryingSite> sites;
  for (auto& [stack, of] : by_stack) {
    if (!Varies(of, has_steps)) continue;
    of.site.stack = stack;
    of.site.sizes = of.sizes.size();
    sites.push_back(of.site);
  }
  std::sort(sites.begin(), sites.end(), [](const VaryingSite& a, const VaryingSite& b) {
    return std::pair(b.held_bytes, a.stack) < std::pair(a.held_bytes, b.stack);
  });
  return sites;
}

void PadToLargest(const std::vector<VaryingSite>& sites, ProgramChange& change) {
  absl::flat_hash_map<uint32_t, uint64_t> largest;
  for (const VaryingSite& site : sites) largest[site.stack] = site.largest;
  const Rows& rows = change.trace().rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!IsCounted(rows, row, change.device())) continue;
    const auto of = largest.find(rows.stack[row]);
    if (of == largest.end()) continue;
    change.Resize(row, [&](uint64_t) { return of->second; });
  }
}

}  // namespace gmt::analysis
