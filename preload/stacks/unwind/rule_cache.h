// preload/stacks/unwind/rule_cache.h
//
// Caches the rules that walks have found, by address: one table for the whole process.
//
//   entry    key = address ^ Mix(rule) ^ epoch, rule      address: as for FindRule
//
// Two threads may write one entry at once, so that a reader sees the key of one and the rule of the
// other. Such a pair is the key of no address, and reads as a miss. For the same reason a new epoch
// invalidates everything at once. No thread ever waits, and a signal handler may run between any
// two instructions.
//
// A table per thread would take half a megabyte for each of a training program's threads, would
// have to be found through the thread and released at its end, and would start empty. The entries
// that a program uses are few and are not written again, so CPU caches can share them.
//
// An address has four slots on one cache line. Nearly all addresses are found in the first.
//
// Thread safety: all functions may be called from any thread and signal handler. Cost:
// docs/unwinding.md.

#ifndef GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_
#define GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/rule.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

// Invalidates all rules. To be called after a library was unloaded, or when other code is found at
// an address.
void RulesChanged();

// While an object of this class exists a library may be going away: no rule is taken from the
// table, and no new rule is stored, because the data it was read from may vanish before its
// replacement is noticed.
class RulesInDoubt {
 public:
  RulesInDoubt();
  // Invalidates the rules known before, unless NothingWasUnloaded() was called.
  ~RulesInDoubt();
  RulesInDoubt(const RulesInDoubt&) = delete;
  RulesInDoubt& operator=(const RulesInDoubt&) = delete;

  void NothingWasUnloaded() { nothing_was_unloaded_ = true; }

 private:
  uint64_t before_, meanwhile_;  // epochs
  bool nothing_was_unloaded_ = false;
};

// For a fork child, which inherits the doubts of threads that it does not have.
void ForgetDoubts();

class RuleCache {
 public:
  // Returns the epoch under which new rules are stored. Read once per walk.
  static uint64_t Epoch() { return epoch_.load(std::memory_order_acquire); }

  // Returns whether a thread is unloading a library.
  static bool IsInDoubt();

  // Returns FindRule(behind), from the cache if possible.
  static Rule Find(uint64_t behind, uint64_t epoch) {
    const Rule rule = Peek(*Home(behind), behind, epoch);
    if (rule.bits() != 0) [[likely]]
      return rule;
    return FindElsewhere(behind, epoch);
  }

  // Returns only a cached rule; its bits are 0 if there is none.
  static Rule Recall(uint64_t behind, uint64_t epoch);
  static void Remember(uint64_t behind, uint64_t epoch, Rule rule);

 private:
  friend void RulesChanged();
  friend class RulesInDoubt;
  struct Entry {
    std::atomic<uint64_t> key, rule;
  };
  static constexpr uint32_t kSize = 1 << 15, kLine = 4;

  // A bijection whose results differ in all parts for any two rules.
  static uint64_t Mix(uint64_t rule) { return (rule ^ rule >> 32) * 0x9e3779b97f4a7c15; }
  // The low bits of the address, computed in as few steps as possible, because the whole walk waits
  // for each.
  static Entry* Home(uint64_t behind) {
    const uint64_t offset = behind * sizeof(Entry) & (kSize - 1) * sizeof(Entry);
    return reinterpret_cast<Entry*>(reinterpret_cast<char*>(entries_) + offset);
  }
  // Returns the i-th slot of the line, counted from `home`.
  static Entry* Beside(Entry* home, uint32_t i) {
    return &entries_[static_cast<uint64_t>(home - entries_) ^ i];
  }
  static Rule Peek(const Entry& e, uint64_t behind, uint64_t epoch) {
    const uint64_t rule = e.rule.load(std::memory_order_relaxed);
    const uint64_t key = e.key.load(std::memory_order_relaxed);
    return key == (behind ^ Mix(rule) ^ epoch) ? Rule::FromBits(rule) : Rule();
  }
  static bool IsInUse(const Entry& e, uint64_t epoch);
  static Rule FindElsewhere(uint64_t behind, uint64_t epoch);

  // Memory that is never touched in a process that walks no stack.
  alignas(64) static constinit Entry entries_[kSize];
  static constinit std::atomic<uint64_t> epoch_;
};

}  // namespace gmt::preload

#else

namespace gmt::preload {

inline void RulesChanged() {}
inline void ForgetDoubts() {}
class RulesInDoubt {
 public:
  RulesInDoubt() {}
  void NothingWasUnloaded() {}
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_
