#include "preload/unwind/rule_cache.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {
namespace {

// Odd, so that no epoch comes back before all have been; and without a pattern, so that the keys of
// two epochs differ all over.
constexpr uint64_t kEpochStep = 0xd1342543de82ef95;

constexpr uint64_t kAddressLimit = uint64_t{1} << 47;  // of a program

constinit std::atomic<uint32_t> in_doubt{0};

}  // namespace

alignas(64) constinit RuleCache::Entry RuleCache::entries_[kSize] = {};
constinit std::atomic<uint64_t> RuleCache::epoch_{kEpochStep};

void RulesChanged() { RuleCache::epoch_.fetch_add(kEpochStep); }

// First the mark, then the new epoch: who sees that epoch sees the mark. What was begun under the
// old one is kept under it, and forgotten with it.
RulesInDoubt::RulesInDoubt() {
  in_doubt.fetch_add(1);
  RulesChanged();
}

RulesInDoubt::~RulesInDoubt() {
  RulesChanged();
  in_doubt.fetch_sub(1);
}

Rule RuleCache::Recall(uint64_t pc, uint64_t epoch) {
  const uint32_t home = Home(pc);
  for (uint32_t i = 0; i < kLine; ++i) {
    const Rule rule = Peek(home ^ i, pc, epoch);
    if (rule.bits() != 0) return rule;
  }
  return Rule();
}

bool RuleCache::IsInUse(uint32_t place, uint64_t epoch) {
  const uint64_t rule = entries_[place].rule.load(std::memory_order_relaxed);
  const uint64_t key = entries_[place].key.load(std::memory_order_relaxed);
  const uint64_t pc = key ^ Mix(rule) ^ epoch;
  return rule != 0 && pc < kAddressLimit && Home(pc) / kLine == place / kLine;
}

void RuleCache::Remember(uint64_t pc, uint64_t epoch, Rule rule) {
  const uint32_t home = Home(pc);
  uint32_t place = home;
  for (uint32_t i = 0; i < kLine; ++i) {
    if (IsInUse(home ^ i, epoch)) continue;
    place = home ^ i;
    break;
  }
  entries_[place].rule.store(rule.bits(), std::memory_order_relaxed);
  entries_[place].key.store(pc ^ Mix(rule.bits()) ^ epoch, std::memory_order_relaxed);
}

// The address of a frame that is not there is 0 - 1: no such rule is looked for.
__attribute__((noinline, cold)) Rule RuleCache::FindElsewhere(uint64_t pc, uint64_t epoch,
                                                              uint32_t home) {
  for (uint32_t i = 1; i < kLine; ++i) {
    const Rule rule = Peek(home ^ i, pc, epoch);
    if (rule.bits() != 0) return rule;
  }
  if (pc >= kAddressLimit) return Rule::OfShape(Rule::kNowhere);
  const bool keep = in_doubt.load() == 0;
  const Rule rule = FindRule(pc);
  // A library may be loaded where nothing is now.
  if (keep && rule.shape() != Rule::kNowhere) Remember(pc, epoch, rule);
  return rule;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
