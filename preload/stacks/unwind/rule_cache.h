// preload/stacks/unwind/rule_cache.h
//
// The rules that walks have found, by address: one table for the whole process.
//
//   entry    key = address ^ Mix(rule) ^ epoch, rule      the address: FindRule's
//
// Two threads may write one entry at once, so that a reader meets the key of one and the rule of
// another: such a pair is the key of no address, and reads as "not there". For the same reason a
// new epoch forgets everything at once. Nothing is ever waited for, and a signal handler may come
// between any two instructions.
//
// Why not a table per thread: that would be half a megabyte for each of a training program's
// threads, would have to be found through the thread and given back at its end, and would start
// empty in each. The entries that a program uses are few and are never written again, so that
// caches share them.
//
// An address has four places, on one cache line: its own first, which is where nearly all are.
//
// Thread safety: all functions from any thread and signal handler. Cost: docs/unwinding.md.

#ifndef GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_
#define GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/rule.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

// Forgets all rules. For who has unloaded a library, or finds other code where some was.
void RulesChanged();

// While one of these exists a library may be going away: no rule is taken from the table, and none
// that is found goes into it, since what it was read from may be gone before the library that takes
// its place is seen.
class RulesInDoubt {
 public:
  RulesInDoubt();
  // What was known before is forgotten, unless NothingHasGone() was called.
  ~RulesInDoubt();
  RulesInDoubt(const RulesInDoubt&) = delete;
  RulesInDoubt& operator=(const RulesInDoubt&) = delete;

  void NothingHasGone() { nothing_has_gone_ = true; }

 private:
  uint64_t before_, meanwhile_;  // epochs
  bool nothing_has_gone_ = false;
};

// In a fork child, which inherits the doubts of threads that it does not have.
void ForgetDoubts();

class RuleCache {
 public:
  // What rules found from now on are kept under. Taken once per walk.
  static uint64_t Epoch() { return epoch_.load(std::memory_order_acquire); }

  // FindRule(behind), remembered or found.
  static Rule Find(uint64_t behind, uint64_t epoch) {
    const Rule rule = Peek(*Home(behind), behind, epoch);
    if (rule.bits() != 0) [[likely]]
      return rule;
    return FindElsewhere(behind, epoch);
  }

  // Only what is remembered; bits 0 where nothing is.
  static Rule Recall(uint64_t behind, uint64_t epoch);
  static void Remember(uint64_t behind, uint64_t epoch, Rule rule);

 private:
  friend void RulesChanged();
  friend class RulesInDoubt;
  struct Entry {
    std::atomic<uint64_t> key, rule;
  };
  static constexpr uint32_t kSize = 1 << 15, kLine = 4;

  // One to one, and any two rules differ in it all over.
  static uint64_t Mix(uint64_t rule) { return (rule ^ rule >> 32) * 0x9e3779b97f4a7c15; }
  // Its lower bits, in as few steps as there are, because the whole walk waits for each.
  static Entry* Home(uint64_t behind) {
    const uint64_t offset = behind * sizeof(Entry) & (kSize - 1) * sizeof(Entry);
    return reinterpret_cast<Entry*>(reinterpret_cast<char*>(entries_) + offset);
  }
  // The i-th place of the line, counted from `home`.
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

  // Memory that a process which walks no stack never touches.
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
  void NothingHasGone() {}
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_RULE_CACHE_H_
