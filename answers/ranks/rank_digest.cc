#include "answers/ranks/rank_digest.h"

#include <algorithm>

#include "analysis/examination/failures.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::AllocatorAction;
using analysis::RowId;

void AddStacks(const Recording& recording, analysis::Step step, RankDigest& digest) {
  const analysis::Rows& rows = recording.trace().rows;
  analysis::StackTexts& stacks = recording.examination().stacks();
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> bytes;
  for (const RowId row : analysis::HeldAfter(recording.trace(), step)) {
    if (rows.device[row] != digest.device || !analysis::IsAllocated(rows, row)) continue;
    bytes[{rows.stack[row], rows.forward_stack[row]}] += rows.size[row];
  }
  for (const auto& [stack, sum] : bytes) {
    digest.stacks[LabelOf(stacks.Frames(stack.first), stacks.Frames(stack.second), false)] += sum;
  }
}

void AddOthers(const Recording& recording, RankDigest& digest) {
  std::map<uint64_t, uint64_t> most;
  for (const analysis::DeviceSample& sample : recording.trace().samples) {
    if (sample.device != digest.device) continue;
    for (const auto& process : sample.processes) {
      if (process.pid != digest.pid && process.bytes)
        most[process.pid] = std::max(most[process.pid], *process.bytes);
    }
  }
  for (const auto& [pid, bytes] : most) digest.others.push_back({pid, bytes});
}

void AddLeak(const Recording& recording, RankDigest& digest) {
  const analysis::LeakReport report = analysis::FindLeaks(recording.examination());
  for (const analysis::LeakSuspect& suspect : report.suspects) {
    if (suspect.tier == analysis::LeakTier::kPossible || suspect.device != digest.device) continue;
    RankDigest::Leak leak;
    leak.bytes_per_step = suspect.bytes_per_cycle;
    if (suspect.common_frame) leak.place = suspect.common_frame->Place();
    leak.is_likely = suspect.tier == analysis::LeakTier::kLikely;
    leak.eta_ns = suspect.eta_ns;
    digest.leak = leak;
    return;
  }
}

}  // namespace

RankDigest MakeDigest(const Recording& recording) {
  const analysis::Trace& trace = recording.trace();
  const analysis::Examination& examination = recording.examination();
  RankDigest digest;
  digest.file = recording.path();
  digest.rank = trace.rank;
  digest.host = trace.hostname;
  digest.pid = trace.pid;
  digest.device = examination.MainDevice();
  digest.steps = examination.cycles().cycles.size();
  digest.failures = analysis::FindFailures(examination).count;
  for (const AllocatorAction& action : examination.allocator_actions()) {
    if (action.kind == AllocatorAction::kRetry && action.device == digest.device) ++digest.retries;
  }
  const auto& devices = examination.replay().devices();
  const auto totals = devices.find(digest.device);
  if (totals == devices.end()) return digest;
  const analysis::Step step = totals->second.bytes.peak_step;
  digest.peak_bytes = totals->second.bytes.peak;
  digest.peak_t_ns = trace.TimeOf(step);
  digest.reserved_bytes = totals->second.segments.peak;
  for (const analysis::CategoryUse& use :
       analysis::CategoriesAt(examination, recording.categories(), digest.device, step)) {
    digest.categories[static_cast<size_t>(use.category)] += use.bytes;
  }
  AddStacks(recording, step, digest);
  const analysis::Ledger ledger = analysis::LedgerAfter(examination, digest.device, step);
  for (const analysis::LedgerRow& row : ledger.rows) {
    if (row.group == analysis::LedgerGroup::kOutsideFramework)
      digest.libraries[row.name] += row.bytes;
  }
  digest.total_bytes = ledger.total_bytes;
  if (!ledger.source.empty()) digest.used_bytes = ledger.driver_used_bytes;
  AddOthers(recording, digest);
  AddLeak(recording, digest);
  return digest;
}

}  // namespace gmt::answers
