#include "analysis/leaks/why_alive.h"

#include <cstddef>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

bool IsOfTensors(const LeakSuspect& suspect) {
  return suspect.kind == LeakKind::kGraphKept || suspect.kind == LeakKind::kTensorKept ||
         suspect.kind == LeakKind::kOptimizerGrows;
}

Step EndOfSteps(const Examination& examination) {
  const std::vector<Cycle>& cycles = examination.cycles().cycles;
  return cycles.empty() ? examination.trace().last_step() : cycles.back().end;
}

AliveBecause WithoutRole(const LeakSuspect& suspect, bool roles_are_known) {
  if (suspect.kind == LeakKind::kOptimizerGrows) return {AliveReason::kOptimizerState, false};
  if (roles_are_known) return {AliveReason::kProgram, true};
  if (suspect.kind == LeakKind::kGraphKept) return {AliveReason::kSaved, false};
  return {};
}

uint64_t SavedBytes(const std::vector<Alive>& all) {
  uint64_t bytes = 0;
  for (const Alive& alive : all)
    bytes += alive.because.reason == AliveReason::kSaved ? alive.bytes : 0;
  return bytes;
}

void Conclude(const std::vector<Alive>& all, uint64_t bytes, LeakSuspect& suspect) {
  if (suspect.kind != LeakKind::kOptimizerGrows) {
    const bool is_graph = SavedBytes(all) * 2 >= bytes;
    suspect.kind = is_graph ? LeakKind::kGraphKept : LeakKind::kTensorKept;
    if (!is_graph) absl::StrAppend(&suspect.reason, "; no graph holds it");
  }
  for (const Alive& alive : all) {
    const bool is_saved = alive.because.reason == AliveReason::kSaved;
    if (is_saved != (suspect.kind == LeakKind::kGraphKept)) continue;
    suspect.alive = alive;
    return;
  }
}

}  // namespace

void FindWhyAlive(const Examination& examination, std::vector<LeakSuspect>& suspects) {
  const Trace& trace = examination.trace();
  const Rows& rows = trace.rows;
  const Step end = EndOfSteps(examination);
  const RolesAt roles(trace, end);
  using Site = std::tuple<int32_t, uint32_t, uint32_t>;
  absl::flat_hash_map<Site, size_t> by_site;
  for (size_t i = 0; i < suspects.size(); ++i) {
    if (!IsOfTensors(suspects[i]) || suspects[i].heap != "pytorch") continue;
    suspects[i].alive.because = WithoutRole(suspects[i], roles.is_known());
    for (const LeakStack& stack : suspects[i].stacks)
      by_site.try_emplace({suspects[i].device, stack.stack, stack.forward_stack}, i);
  }
  if (!roles.is_known() || by_site.empty()) return;
  std::vector<AliveSums> sums(suspects.size());
  std::vector<uint64_t> bytes(suspects.size());
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!rows.HeldAfter(row, end) || rows.heap[row] <= kHostHeap) continue;
    const auto site = by_site.find({rows.device[row], rows.stack[row], rows.forward_stack[row]});
    if (site == by_site.end()) continue;
    const size_t of = site->second;
    sums[of].Add(roles.Of(row), WithoutRole(suspects[of], true), rows.size[row]);
    bytes[of] += rows.size[row];
  }
  for (size_t i = 0; i < suspects.size(); ++i) {
    if (bytes[i] > 0) Conclude(sums[i].Sorted(examination.stacks()), bytes[i], suspects[i]);
  }
}

}  // namespace gmt::analysis
