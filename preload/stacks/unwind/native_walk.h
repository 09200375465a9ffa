// preload/stacks/unwind/native_walk.h
//
// NativeWalk: the calling thread's native frames, from the function that asks outwards.
//
//   NativeWalk walk(CaptureRegisters());
//   for (NativeFrame frame; walk.Next(&frame);) ...
//   if (walk.truncated()) ...
//
// What compilers say about frames in .eh_frame is condensed to a rule of eight bytes per address
// (preload/stacks/unwind/rule.h) and remembered (preload/stacks/unwind/rule_cache.h); a frame then costs two
// additions and two loads. It works on any stack: of the thread, of a coroutine, of a signal
// handler, and out of that into what the signal has interrupted.
//
// Invariants, whatever the tables say
//   W1  Nothing is read that is not known to be readable (preload/stacks/unwind/stack_range.h).
//   W2  The stack pointer rises with each frame, but from a signal handler's stack to the one that
//       was interrupted; after kMostFrames the walk ends.
//   W3  A frame's address lies in code. Where the way on is not certain, the walk ends and is
//       truncated().
//
// Thread safety: any number of walks, in any threads and signal handlers. No lock, no allocation;
// no system call where the thread has been seen at that depth of that stack before. Needs
// PrepareModules() once (preload/stacks/unwind/loaded_module.h); before that a walk ends at once.
// Cost, and why it is built this way: docs/unwinding.md.

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
  // The function that has captured `here` must not return before the walk is over.
  explicit NativeWalk(const Registers& here) : start_(here) {
    const StackRange range = StackRange::Around(here.sp);
    at_ = {here.pc + 1,        here.sp, here.bp, range.low,     range.high,
           RuleCache::Epoch(), 0,       true,    WalkEnd::kNone};
  }

  // False when there are no more.
  [[gnu::always_inline]] bool Next(NativeFrame* frame) {
    const Rule rule = RuleCache::Find(at_.behind, at_.epoch);
    const uint64_t base = rule.from_bp() ? at_.bp : at_.sp;
    const uint64_t cfa = base + static_cast<uint64_t>(rule.offset());
    const uint64_t saved_bp = cfa + static_cast<uint64_t>(rule.saved_at());
    // Below the range only where a signal has come just behind an instruction that frees a frame.
    if (!rule.IsSimple() || cfa <= at_.sp || cfa > at_.high || (cfa & 7) != 0 ||
        saved_bp < at_.low || at_.count == kMostFrames) [[unlikely]] {
      const Other other = TakeOtherWay(at_, start_, rule);
      at_ = other.next;
      *frame = other.frame;
      return other.frame.address != 0;
    }
    *frame = {at_.address(), cfa, at_.exact};
    if (rule.bp_at_cfa()) at_.bp = LoadWord(saved_bp);
    at_.behind = LoadWord(cfa - sizeof(uint64_t));
    at_.sp = cfa;
    at_.exact = false;
    ++at_.count;
    return true;
  }

  // Whether it ended before the outermost frame. Asked after Next() has returned false.
  bool truncated() const { return at_.end == WalkEnd::kTruncated; }

 private:
  static constexpr uint32_t kMostFrames = 288;  // what a stack in a recording holds, and our own

  // Passed by value and never by address, so that it can live in registers; and no two of its words
  // side by side, because compilers would put those into one vector register, out of which every
  // step would have to fetch them.
  struct State {
    alignas(16) uint64_t behind;  // as FindRule has it
    alignas(16) uint64_t sp;
    alignas(16) uint64_t bp;
    alignas(16) uint64_t low;  // the range that can be read
    alignas(16) uint64_t high;
    alignas(16) uint64_t epoch;
    uint32_t count;  // frames given so far
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
  struct Other {
    State next;
    NativeFrame frame;  // address 0: none
  };
  static Other TakeOtherWay(State at, Registers start, Rule rule);

  const Registers start_;
  State at_;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_
