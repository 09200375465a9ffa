#include "preload/stacks/unwind/rule_cache.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/base/memory.h"

namespace gmt::preload {
namespace {

// Odd, so that no epoch is repeated before all have been used, and without a pattern, so that the
// keys of two epochs differ in all parts.
constexpr uint64_t kEpochStep = 0xd1342543de82ef95;

// State: how many threads are inside dlclose(). ForgetDoubts() clears it in a fork child.
constinit std::atomic<uint32_t> in_doubt{0};

// Cache: the last epoch that was used.
constinit std::atomic<uint64_t> newest_epoch{kEpochStep};
uint64_t NewEpoch() { return newest_epoch.fetch_add(kEpochStep) + kEpochStep; }

}  // namespace

// Cache: the rules of code addresses.
alignas(64) constinit RuleCache::Entry RuleCache::entries_[kSize] = {};
constinit std::atomic<uint64_t> RuleCache::epoch_{kEpochStep};

void RulesChanged() { RuleCache::epoch_.store(NewEpoch()); }

// First the counter, then the new epoch: a thread that sees the epoch also sees the counter.
RulesInDoubt::RulesInDoubt() {
  in_doubt.fetch_add(1);
  meanwhile_ = NewEpoch();
  before_ = RuleCache::epoch_.exchange(meanwhile_);
}

// The old epoch is restored only if no other thread has begun a new one, that is, had a doubt.
RulesInDoubt::~RulesInDoubt() {
  uint64_t expected = meanwhile_;
  if (!nothing_was_unloaded_ || !RuleCache::epoch_.compare_exchange_strong(expected, before_)) {
    RulesChanged();
  }
  uint32_t doubts = in_doubt.load();
  while (doubts > 0 && !in_doubt.compare_exchange_weak(doubts, doubts - 1)) {
  }
}

bool RuleCache::IsInDoubt() { return in_doubt.load() != 0; }

void ForgetDoubts() { in_doubt.store(0); }

Rule RuleCache::Recall(uint64_t behind, uint64_t epoch) {
  for (uint32_t i = 0; i < kLine; ++i) {
    const Rule rule = Peek(*Beside(Home(behind), i), behind, epoch);
    if (rule.bits() != 0) return rule;
  }
  return Rule();
}

bool RuleCache::IsInUse(const Entry& e, uint64_t epoch) {
  const uint64_t rule = e.rule.load(std::memory_order_relaxed);
  const uint64_t behind = e.key.load(std::memory_order_relaxed) ^ Mix(rule) ^ epoch;
  return rule != 0 && behind < kAddressLimit &&
         (Home(behind) - entries_) / kLine == (&e - entries_) / kLine;
}

void RuleCache::Remember(uint64_t behind, uint64_t epoch, Rule rule) {
  Entry* place = Home(behind);
  for (uint32_t i = 0; i < kLine; ++i) {
    Entry* beside = Beside(Home(behind), i);
    if (IsInUse(*beside, epoch)) continue;
    place = beside;
    break;
  }
  place->rule.store(rule.bits(), std::memory_order_relaxed);
  place->key.store(behind ^ Mix(rule.bits()) ^ epoch, std::memory_order_relaxed);
}

__attribute__((noinline, cold)) Rule RuleCache::FindElsewhere(uint64_t behind, uint64_t epoch) {
  if (behind == 0 || behind >= kAddressLimit) return Rule::OfShape(Rule::kNowhere);
  const Rule known = Recall(behind, epoch);
  if (known.bits() != 0) return known;
  const bool keep = !IsInDoubt();
  const Rule rule = FindRule(behind);
  // A library may later be loaded at an address where there is nothing now.
  if (keep && rule.shape() != Rule::kNowhere) Remember(behind, epoch, rule);
  return rule;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
