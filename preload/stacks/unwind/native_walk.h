// preload/stacks/unwind/native_walk.h
//
// NativeWalk: walks the calling thread's native frames, starting at the function that creates it.
//
//   NativeWalk walk(CaptureRegisters());
//   for (NativeFrame frame; walk.Next(&frame);) ...
//   if (walk.truncated()) ...
//
// The compilers' frame descriptions in .eh_frame are condensed to a rule of eight bytes per address
// (preload/stacks/unwind/rule.h) and cached (preload/stacks/unwind/rule_cache.h). A frame then
// costs two additions and two loads. It works on any stack: a thread's, a coroutine's, a signal
// handler's, and from there into the interrupted code.
//
// Invariants, whatever the tables contain
//   W1  Only memory that is known to be readable is read (preload/stacks/unwind/stack_range.h).
//   W2  The stack pointer rises with each frame, except from a signal handler's stack to the
//       interrupted one; after kMaxFrames the walk ends.
//   W3  A frame's address lies in code. If the next step is uncertain, the walk ends and is
//       truncated().
//
// Thread safety: any number of walks, in any threads and signal handlers. No lock, no allocation,
// and no system call if the thread has been seen at that depth of that stack before. Needs one call
// of PrepareModules() (preload/stacks/unwind/loaded_module.h); before that a walk ends immediately.
// Cost and rationale: docs/unwinding.md.

#ifndef GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_
#define GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_

#include <stdint.h>

#include "preload/stacks/unwind/native_frame.h"
#include "preload/stacks/unwind/registers.h"
#include "preload/stacks/unwind/rule_cache.h"
#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class NativeWalk {
 public:
  // The function that has captured `here` must not return before the walk ends.
  explicit NativeWalk(const Registers& here) : start_(here) {
    const StackRange range = StackRange::Around(here.sp);
    at_ = {here.pc + 1,        here.sp, here.bp, range.low,     range.high,
           RuleCache::Epoch(), 0,       true,    WalkEnd::kNone};
  }

  // Returns false if there are no more frames.
  [[gnu::always_inline]] bool Next(NativeFrame* frame) {
    const Rule rule = RuleCache::Find(at_.behind, at_.epoch);
    const uint64_t base = rule.from_bp() ? at_.bp : at_.sp;
    const uint64_t cfa = base + static_cast<uint64_t>(rule.offset());
    const uint64_t saved_bp = cfa + static_cast<uint64_t>(rule.saved_at());
    // The CFA is below the range only if a signal arrived just after an instruction that frees a
    // frame.
    if (!rule.IsSimple() || cfa <= at_.sp || cfa > at_.high || (cfa & 7) != 0 ||
        saved_bp < at_.low || at_.count == kMaxFrames) [[unlikely]] {
      const StepResult result = TakeSlowStep(at_, start_, rule);
      at_ = result.next;
      *frame = result.frame;
      return result.frame.address != 0;
    }
    *frame = {at_.address(), cfa, at_.exact};
    if (rule.bp_at_cfa()) at_.bp = LoadWord(saved_bp);
    at_.behind = LoadWord(cfa - sizeof(uint64_t));
    at_.sp = cfa;
    at_.exact = false;
    ++at_.count;
    return true;
  }

  // Returns whether the walk ended before the outermost frame. Valid after Next() has returned
  // false.
  bool truncated() const { return at_.end == WalkEnd::kTruncated; }

 private:
  static constexpr uint32_t kMaxFrames = 288;  // the depth of a recorded stack, plus our own
                                               // frames

  // Passed by value and never by address, so that it can live in registers. No two of its words are
  // adjacent, because compilers would put those into one vector register, from which every step
  // would have to extract them.
  struct State {
    alignas(16) uint64_t behind;  // as for FindRule
    alignas(16) uint64_t sp;
    alignas(16) uint64_t bp;
    alignas(16) uint64_t low;  // the readable range
    alignas(16) uint64_t high;
    alignas(16) uint64_t epoch;
    uint32_t count;  // frames returned so far
    bool exact;
    WalkEnd end;

    uint64_t address() const { return behind - (exact ? 1 : 0); }
    // Moves to the caller.
    void Set(uint64_t new_address, uint64_t new_sp, uint64_t new_bp, bool is_exact) {
      behind = new_address + (is_exact ? 1 : 0);
      sp = new_sp;
      bp = new_bp;
      exact = is_exact;
    }
  };
  struct Steps;
  struct StepResult {
    State next;
    NativeFrame frame;  // address 0: none
  };
  static StepResult TakeSlowStep(State at, Registers start, Rule rule);

  const Registers start_;
  State at_;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_
