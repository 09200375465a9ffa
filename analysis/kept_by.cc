#include "analysis/kept_by.h"

#include <algorithm>

#include "format/event.h"

namespace gmt::analysis {
namespace {

// What decides where several roles hold.
uint32_t First(uint32_t roles) {
  for (const uint32_t role : {format::kRoleParameter, format::kRoleGradient, format::kRoleSaved}) {
    if ((roles & role) != 0) return role;
  }
  return 0;
}

bool IsAlike(const Keepers& a, const Keepers& b) {
  if (First(a.roles) != First(b.roles)) return false;
  return First(a.roles) != format::kRoleSaved || (a.node == b.node && a.stack == b.stack);
}

}  // namespace

KeptBy::KeptBy(const Trace& trace, Step step) : trace_(trace) {
  for (const RoleChange& change : trace.role_changes) {
    if (change.step > step) break;
    Keepers& keepers = keepers_[change.row];
    keepers.roles = change.roles;
    if ((change.roles & format::kRoleSaved) == 0) {
      keepers.node = keepers.stack = keepers.nodes = 0;
    } else if (change.node != 0 || change.stack != 0) {
      keepers.node = change.node;
      keepers.stack = change.stack;
      ++keepers.nodes;
    }
  }
}

void KeptSums::Add(const Keepers& keepers, uint64_t bytes) {
  auto found = std::find_if(sums_.begin(), sums_.end(), [&](const KeptMemory& sum) {
    return IsAlike(sum.keepers, keepers);
  });
  if (found == sums_.end()) found = sums_.insert(sums_.end(), {keepers});
  found->keepers.nodes = std::max(found->keepers.nodes, keepers.nodes);
  found->bytes += bytes;
  ++found->count;
}

std::vector<KeptMemory> KeptSums::Sorted() const {
  std::vector<KeptMemory> sorted = sums_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const KeptMemory& a, const KeptMemory& b) { return a.bytes > b.bytes; });
  return sorted;
}

}  // namespace gmt::analysis
