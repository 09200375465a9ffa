#include "analysis/examination/alive.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "format/event.h"

namespace gmt::analysis {

std::string_view NameOf(AliveReason reason) {
  static constexpr std::array<std::string_view, kAliveReasons> kNames = {
      "unknown", "parameter", "gradient", "saved", "optimizer_state", "input", "program"};
  return kNames[static_cast<size_t>(reason)];
}

std::string_view TextOf(AliveReason reason) {
  static constexpr std::array<std::string_view, kAliveReasons> kTexts = {
      "",
      "a parameter",
      "a gradient",
      "saved for backward",
      "state of an optimizer",
      "an input",
      "only the program holds it"};
  return kTexts[static_cast<size_t>(reason)];
}

void RolesAt::Apply(const RoleChange& change, HeldRoles& held) {
  held.roles = change.roles;
  if ((change.roles & format::kRoleSaved) == 0) {
    held.nodes.clear();
  } else if (change.node != 0 || change.stack != 0) {
    held.nodes.push_back({change.node, change.stack});
  }
}

RolesAt::RolesAt(const Trace& trace, Step step, When when)
    : is_known_(!trace.role_changes.empty()) {
  auto change = trace.role_changes.begin();
  for (; change != trace.role_changes.end() && change->step <= step; ++change)
    Apply(*change, held_[change->row]);
  if (when == When::kNow) return;
  absl::flat_hash_set<RowId> ended;  // rows whose next role has ended
  for (; change != trace.role_changes.end(); ++change) {
    const auto now = held_.find(change->row);
    if (ended.contains(change->row) || (now != held_.end() && now->second.roles != 0)) continue;
    const auto next = next_.find(change->row);
    if (change->roles != 0) {
      Apply(*change, next_[change->row]);
    } else if (next != next_.end()) {
      ended.insert(change->row);
    }
  }
}

HeldRoles RolesAt::Of(RowId row) const {
  const auto now = held_.find(row);
  if (now != held_.end() && now->second.roles != 0) return now->second;
  const auto next = next_.find(row);
  return next == next_.end() ? HeldRoles{} : next->second;
}

AliveBecause BecauseOf(uint32_t roles, AliveBecause otherwise) {
  if ((roles & format::kRoleParameter) != 0) return {AliveReason::kParameter, true};
  if ((roles & format::kRoleGradient) != 0) return {AliveReason::kGradient, true};
  if ((roles & format::kRoleSaved) != 0) return {AliveReason::kSaved, true};
  return otherwise;
}

void AliveSums::Add(const HeldRoles& held, AliveBecause otherwise, uint64_t bytes) {
  const AliveBecause because = BecauseOf(held.roles, otherwise);
  Sum& sum = sums_[because];
  sum.bytes += bytes;
  ++sum.count;
  if (because.reason != AliveReason::kSaved) return;
  for (const GraphNode& node : held.nodes) {
    auto& [saved_bytes, saved_count] = sum.savers[node];
    saved_bytes += bytes;
    ++saved_count;
  }
}

std::vector<Alive> AliveSums::Sorted(StackTexts& texts) const {
  const auto by_bytes = [](const auto& a, const auto& b) { return a.bytes > b.bytes; };
  std::vector<Alive> sorted;
  for (const auto& [because, sum] : sums_) {
    Alive alive{because, sum.bytes, sum.count, {}, 0};
    for (const auto& [node, saved] : sum.savers) {
      alive.savers.push_back({std::string(texts.definitions().string(node.name)),
                              node.stack,
                              {},
                              std::nullopt,
                              saved.first,
                              saved.second});
    }
    std::stable_sort(alive.savers.begin(), alive.savers.end(), by_bytes);
    if (alive.savers.size() > kMaxSavers) {
      alive.more_savers = alive.savers.size() - kMaxSavers;
      alive.savers.resize(kMaxSavers);
    }
    for (Alive::Savers& savers : alive.savers) {
      savers.frames = texts.Frames(savers.stack);
      if (const FrameText* own = texts.Own(savers.stack)) savers.own = *own;
    }
    sorted.push_back(std::move(alive));
  }
  std::stable_sort(sorted.begin(), sorted.end(), by_bytes);
  return sorted;
}

}  // namespace gmt::analysis
