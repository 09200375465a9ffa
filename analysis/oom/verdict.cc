#include "analysis/oom/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "analysis/examination/replay.h"

namespace gmt::analysis {
namespace {

// Minimum size of a cause relative to the device. A caching allocator always has a few holes, and
// on a full device a small request may fail because of any of them.
constexpr uint64_t kLeastFreePercent = 2;
constexpr uint64_t kLeastOthersPercent = 5;
constexpr uint64_t kClosePercent = 5;

// What the device, or a limit, would give this process if it held nothing.
uint64_t Whole(const OomEvidence& evidence) {
  if (evidence.total_bytes > 0) return evidence.total_bytes;
  return evidence.live_bytes + evidence.free_bytes + evidence.outside_bytes +
         evidence.driver_free_bytes.value_or(0);
}

class Decider {
 public:
  Decider(const OomFacts& facts, const LeakAtFailure& leak)
      : facts_(facts), evidence_(facts.evidence), leak_(leak) {}

  OomDecision Decide() && {
    FindCauses();
    if (IsTooLarge()) return Say(OomVerdict::kSingleRequest, Confidence::kHigh);
    if (IsCapped() && PoolCauses() == 0) return Say(OomVerdict::kCap, CapConfidence());
    if (decision_.causes.empty()) return Say(OomVerdict::kCapacity, CapacityConfidence());
    const OomVerdict verdict = decision_.causes.front().verdict;
    return Say(verdict, ConfidenceOf(verdict));
  }

 private:
  OomDecision Say(OomVerdict verdict, Confidence confidence) {
    decision_.verdict = verdict;
    decision_.confidence = confidence;
    return std::move(decision_);
  }

  bool IsTooLarge() const {
    if (evidence_.total_bytes == 0) return false;
    uint64_t own = evidence_.system_bytes;
    for (const LedgerRow& row : facts_.ledger.rows) {
      if (row.group == LedgerGroup::kOutsideFramework && row.known_by != "events") own += row.bytes;
    }
    return evidence_.needed_bytes > evidence_.total_bytes - std::min(own, evidence_.total_bytes);
  }

  // Refused by the allocator's own limit, or by the driver although it reported enough free memory.
  bool IsCapped() const {
    if (evidence_.limit_bytes) {
      return !evidence_.driver_free_bytes || *evidence_.driver_free_bytes >= evidence_.needed_bytes;
    }
    return evidence_.driver_free_bytes && *evidence_.driver_free_bytes >= evidence_.needed_bytes &&
           evidence_.needed_bytes > 0;
  }
  Confidence CapConfidence() const {
    if (!evidence_.limit_bytes) return Confidence::kLow;
    return evidence_.driver_free_bytes ? Confidence::kHigh : Confidence::kMedium;
  }

  void Add(OomVerdict verdict, uint64_t bytes, uint64_t least_percent) {
    const bool is_enough = bytes >= MissingBytes(evidence_) && bytes > 0;
    if (is_enough && bytes >= PercentOf(Whole(evidence_), least_percent)) {
      decision_.causes.push_back({verdict, bytes});
    }
  }
  // Adds a cause whose memory would be needed in addition to what is available.
  void AddMore(OomVerdict verdict, uint64_t bytes, uint64_t least_percent) {
    if (bytes >= ShortBytes(evidence_, evidence_.available_bytes))
      Add(verdict, bytes, least_percent);
  }
  // Adds a cause of memory available in the wrong place: it must be enough for the whole step.
  void AddPieces(OomVerdict verdict, uint64_t bytes, uint64_t available) {
    if (ShortBytes(evidence_, available) > 0) return;
    if (evidence_.expected.basis != ExpectedPeak::Basis::kEarlierSteps) {
      Add(verdict, bytes, kLeastFreePercent);
    } else if (bytes > 0 && Fits(bytes)) {
      decision_.causes.push_back({verdict, bytes});
    }
  }
  bool Fits(uint64_t bytes) const {
    const uint64_t free = evidence_.limit_bytes ? 0 : evidence_.driver_free_bytes.value_or(0);
    return bytes + free >= facts_.failed->size;
  }

  void FindCauses() {
    const FragmentationSplit& split = evidence_.split;
    const uint64_t free = split.pinned + split.stream + split.releasable;
    const uint64_t available = evidence_.available_bytes;
    if (!facts_.by_framework || evidence_.captures > 0) {
      // The cache of another allocator or of a graph's pool is unavailable to this request.
      AddPieces(OomVerdict::kPrivatePool, free + split.private_pool, available);
    } else {
      AddPieces(OomVerdict::kFragmentation, free,
                available - std::min(available, split.private_pool));
      AddPieces(OomVerdict::kPrivatePool, split.private_pool, available);
    }
    if (evidence_.captures > 0) {
      AddPieces(OomVerdict::kStreamDeferred, split.awaiting_stream, available);
    }
    AddMore(OomVerdict::kLeak, leak_.bytes, kLeastFreePercent);
    AddMore(OomVerdict::kOutside, facts_.avoidable_outside_bytes, kLeastOthersPercent);
    AddMore(OomVerdict::kOtherProcess, facts_.avoidable_others_bytes, kLeastOthersPercent);
    // Growing memory is blamed before memory that was constant.
    const auto weight = [](const OomCause& cause) {
      const bool grows = cause.verdict == OomVerdict::kLeak;
      return grows && cause.bytes <= UINT64_MAX / 2 ? 2 * cause.bytes : cause.bytes;
    };
    std::stable_sort(decision_.causes.begin(), decision_.causes.end(),
                     [&](const OomCause& a, const OomCause& b) { return weight(a) > weight(b); });
  }

  // Counts the causes inside the allocator: without them, its limit would have sufficed.
  uint64_t PoolCauses() const {
    uint64_t causes = 0;
    for (const OomCause& cause : decision_.causes) {
      const bool is_outside =
          cause.verdict == OomVerdict::kOutside || cause.verdict == OomVerdict::kOtherProcess;
      causes += is_outside ? 0 : 1;
    }
    return causes;
  }

  // Whether the difference is within the error of the expectation.
  bool IsClose() const {
    const uint64_t expected = evidence_.expected.bytes, available = evidence_.available_bytes;
    const uint64_t most = expected + evidence_.expected.perhaps_bytes;
    const uint64_t apart = expected > available ? expected - available
                           : available > most   ? available - most
                                                : 0;
    return evidence_.expected.basis != ExpectedPeak::Basis::kSoFar &&
           apart < PercentOf(available, kClosePercent);
  }

  Confidence CapacityConfidence() const {
    const bool known = evidence_.total_bytes > 0 || evidence_.driver_free_bytes;
    const bool is_needed_now =
        evidence_.live_bytes + facts_.failed->size > evidence_.available_bytes;
    return known && evidence_.live_bytes >= PercentOf(Whole(evidence_), 50) &&
                   (is_needed_now || !IsClose())
               ? Confidence::kHigh
               : Confidence::kMedium;
  }

  Confidence ConfidenceOf(OomVerdict verdict) const {
    switch (verdict) {
      case OomVerdict::kLeak:
        return leak_.suspect->tier == LeakTier::kLeak ? Confidence::kHigh : Confidence::kMedium;
      case OomVerdict::kOtherProcess:
        return evidence_.other_processes_bytes >= evidence_.not_apart_bytes + evidence_.grown_bytes
                   ? Confidence::kHigh
                   : Confidence::kLow;
      case OomVerdict::kPrivatePool:
        return Confidence::kMedium;
      case OomVerdict::kFragmentation:
        return evidence_.largest_free_bytes < facts_.failed->size && !IsClose()
                   ? Confidence::kHigh
                   : Confidence::kMedium;
      case OomVerdict::kOutside:
        return Confidence::kHigh;
      default:
        return Confidence::kMedium;
    }
  }

  const OomFacts& facts_;
  const OomEvidence& evidence_;
  const LeakAtFailure& leak_;
  OomDecision decision_;
};

}  // namespace

uint64_t PercentOf(uint64_t bytes, uint64_t percent) {
  return bytes / 100 * percent + bytes % 100 * percent / 100;
}

uint64_t MissingBytes(const OomEvidence& evidence) {
  // Under a limit, the driver's free memory is unavailable.
  const uint64_t free = evidence.limit_bytes ? 0 : evidence.driver_free_bytes.value_or(0);
  return evidence.needed_bytes - std::min(evidence.needed_bytes, free);
}

uint64_t ShortBytes(const OomEvidence& evidence, uint64_t available) {
  const ExpectedPeak& expected = evidence.expected;
  if (expected.basis == ExpectedPeak::Basis::kGrowth) return UINT64_MAX;
  return expected.bytes - std::min(expected.bytes, available);
}

LeakAtFailure LargestLeak(const Trace& trace, const LeakReport& leaks,
                          const FailedAllocation& failed) {
  LeakAtFailure largest;
  const Rows& rows = trace.rows;
  std::vector<RowId> held;
  for (const LeakSuspect& suspect : leaks.suspects) {
    if (suspect.tier == LeakTier::kPossible || suspect.device != failed.device) continue;
    absl::flat_hash_set<uint32_t> stacks;
    for (const LeakStack& stack : suspect.stacks) stacks.insert(stack.stack);
    if (held.empty()) held = HeldAfter(trace, failed.step);
    uint64_t live = 0;
    for (RowId row : held) {
      if (rows.device[row] == failed.device && stacks.contains(rows.stack[row])) {
        live += rows.size[row];
      }
    }
    // If no allocation grows, only the device's use is known.
    if (suspect.stacks.empty()) live = suspect.bytes;
    const double grown =
        suspect.bytes_per_cycle * static_cast<double>(leaks.cycles.count) * 1.1 + 1;
    const uint64_t most = std::max(
        suspect.bytes, grown > 0 && grown < 9e18 ? static_cast<uint64_t>(grown) : uint64_t{0});
    const uint64_t bytes = std::min(live, most);
    if (bytes > largest.bytes) largest = {&suspect, bytes};
  }
  return largest;
}

OomDecision Decide(const OomFacts& facts, const LeakAtFailure& leak) {
  return Decider(facts, leak).Decide();
}

}  // namespace gmt::analysis
