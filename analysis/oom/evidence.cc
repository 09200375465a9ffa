#include "analysis/oom/evidence.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/trace/recorded_time.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

// Contexts and code of one process on one device; the largest observed are about this size.
constexpr uint64_t kContextBytes = 1024 * kMiB;
// The driver's answer belongs to a failure that follows within this time.
constexpr uint64_t kAnswerAge_ns = 100'000'000;

bool IsBlockEvent(const Trace& trace, Step step, int32_t device) {
  const RowId row = trace.steps[step - 1].row;
  return row != kNoRow && trace.rows.IsBlock(row) && trace.rows.device[row] == device;
}

// Whether the driver refused anything since the last block event of the device: an allocator makes
// its driver calls without block events in between.
bool DriverRefused(const Trace& trace, const FailedAllocation& failed) {
  Step since = failed.step;
  while (since > 0 && !IsBlockEvent(trace, since, failed.device)) --since;
  const auto index = static_cast<size_t>(&failed - trace.failed.data());
  for (size_t i = index; i-- > 0 && trace.failed[i].step >= since;) {
    const FailedAllocation& other = trace.failed[i];
    if (other.heap > kHostHeap && other.device == failed.device) return false;
    if (other.heap == kDriverHeap && other.device == failed.device &&
        other.thread == failed.thread) {
      return true;
    }
  }
  return false;
}

// Returns the driver's free bytes from the sample that the allocator requests when it fails.
std::optional<uint64_t> FreshAnswer(const Trace& trace, const FailedAllocation& failed) {
  for (size_t i = trace.samples.size(); i-- > 0;) {
    const DeviceSample& sample = trace.samples[i];
    if (sample.t_ns > failed.t_ns || sample.device != failed.device) continue;
    const bool is_fresh =
        sample.step == failed.step && Between(sample.t_ns, failed.t_ns) <= kAnswerAge_ns;
    if (is_fresh && sample.free_bytes) return sample.free_bytes;
    if (sample.step < failed.step) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<uint64_t> DriverFree(const Trace& trace, const FailedAllocation& failed,
                                   const Ledger& ledger) {
  if (const auto fresh = FreshAnswer(trace, failed)) return fresh;
  if (!ledger.total_bytes || ledger.source.empty()) return std::nullopt;
  return *ledger.total_bytes - std::min(*ledger.total_bytes, ledger.driver_used_bytes);
}

void AddLedger(const Ledger& ledger, OomFacts& facts) {
  OomEvidence& evidence = facts.evidence;
  evidence.total_bytes = ledger.total_bytes.value_or(0);
  evidence.other_processes_bytes = ledger.bytes_of(LedgerGroup::kOtherProcess);
  evidence.not_apart_bytes = ledger.bytes_of(LedgerGroup::kNotApart);
  evidence.system_bytes = ledger.bytes_of(LedgerGroup::kSystem);
  evidence.unexplained_bytes = ledger.unexplained_bytes;
  evidence.reserved_bytes = ledger.bytes_of(LedgerGroup::kReserved);
  uint64_t recorded = 0, standing = 0;
  for (const LedgerRow& row : ledger.rows) {
    if (row.group != LedgerGroup::kOutsideFramework) continue;
    (row.known_by == "events" ? recorded : standing) += row.bytes;
  }
  const uint64_t unexplained =
      static_cast<uint64_t>(std::max<int64_t>(ledger.unexplained_in_process, 0));
  facts.avoidable_outside_bytes = standing - std::min(standing, kContextBytes) + unexplained;
  if (evidence.reserved_bytes > 0) {
    evidence.live_bytes = facts.fragmentation.allocated_bytes;
    for (const LedgerRow& row : ledger.rows) {
      if (row.name == "blocks elsewhere") evidence.live_bytes += row.bytes;
    }
    evidence.free_bytes =
        evidence.reserved_bytes - std::min(evidence.reserved_bytes, evidence.live_bytes);
    evidence.outside_bytes = recorded + standing;
    facts.avoidable_outside_bytes += recorded;
  } else {
    evidence.live_bytes = recorded;
    evidence.outside_bytes = standing;
  }
  evidence.grown_bytes =
      static_cast<uint64_t>(std::max<int64_t>(ledger.unexplained_bytes, 0) -
                            std::min(std::max<int64_t>(ledger.unexplained_bytes, 0),
                                     std::max<int64_t>(ledger.unexplained_in_process, 0)));
  facts.avoidable_others_bytes =
      evidence.other_processes_bytes + evidence.grown_bytes +
      (evidence.not_apart_bytes - std::min(evidence.not_apart_bytes, kContextBytes));
}

void AddRetries(const Examination& examination, const FailedAllocation& failed,
                OomEvidence& evidence) {
  for (const AllocatorAction& action : examination.allocator_actions()) {
    if (action.kind != AllocatorAction::kRetry || action.device != failed.device) continue;
    if (action.t_ns >= failed.t_ns || !action.succeeded) continue;
    if (evidence.retries++ == 0) evidence.first_retry_t_ns = action.t_ns;
    evidence.retry_ns += action.duration_ns;
  }
}

void AddLimit(const Trace& trace, OomFacts& facts) {
  OomEvidence& evidence = facts.evidence;
  if (!facts.is_pytorch || evidence.driver_refused) return;
  // A snapshot of PyTorch's own recorder has no driver refusals: only the free memory shows a
  // limit.
  if (!trace.imported_from.empty() &&
      evidence.driver_free_bytes.value_or(0) < evidence.needed_bytes) {
    return;
  }
  evidence.limit_bytes = evidence.reserved_bytes;
  double fraction = 0;
  if (absl::SimpleAtod(std::string(AllocatorOption(trace, "per_process_memory_fraction")),
                       &fraction) &&
      fraction > 0 && fraction < 1 && evidence.total_bytes > 0) {
    evidence.limit_bytes =
        static_cast<uint64_t>(static_cast<double>(evidence.total_bytes) * fraction);
  }
}

void AddAvailable(OomEvidence& evidence) {
  evidence.available_bytes = evidence.live_bytes + evidence.free_bytes;
  if (evidence.limit_bytes) {
    evidence.available_bytes +=
        *evidence.limit_bytes - std::min(*evidence.limit_bytes, evidence.reserved_bytes);
  } else {
    evidence.available_bytes += evidence.driver_free_bytes.value_or(0);
  }
}

}  // namespace

uint64_t SegmentBytesFor(uint64_t bytes) {
  constexpr uint64_t kSmall = kMiB, kMinLarge = 10 * kMiB, kRound = 2 * kMiB;
  if (bytes <= kSmall) return 2 * kMiB;
  if (bytes < kMinLarge) return 20 * kMiB;
  if (bytes > UINT64_MAX - kRound) return bytes;
  return (bytes + kRound - 1) / kRound * kRound;
}

OomFacts FactsOf(const Examination& examination, const FailedAllocation& failed) {
  const Trace& trace = examination.trace();
  OomFacts facts;
  facts.failed = &failed;
  facts.by_framework = failed.heap > kHostHeap;
  facts.is_pytorch = facts.by_framework && trace.heaps[failed.heap] == "pytorch";
  OomEvidence& evidence = facts.evidence;
  evidence.needed_bytes = facts.is_pytorch ? SegmentBytesFor(failed.size) : failed.size;
  evidence.captures = CapturesAt(trace, failed.t_ns);
  facts.fragmentation =
      FragmentationAfter(examination, failed.device, failed.step, RequesterOf(trace, failed));
  facts.fragmentation.at.name = "oom";
  facts.fragmentation.at.t_ns = failed.t_ns;
  evidence.split = facts.fragmentation.split;
  evidence.largest_free_bytes = facts.fragmentation.largest_free_bytes;
  facts.ledger = LedgerAt(examination, failed.device, {failed.step, failed.t_ns, "oom"});
  AddLedger(facts.ledger, facts);
  evidence.driver_free_bytes = DriverFree(trace, failed, facts.ledger);
  evidence.driver_refused = !facts.by_framework || DriverRefused(trace, failed);
  AddLimit(trace, facts);
  AddAvailable(evidence);
  AddRetries(examination, failed, evidence);
  return facts;
}

}  // namespace gmt::analysis
