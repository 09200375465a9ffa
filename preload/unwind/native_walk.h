// preload/unwind/native_walk.h
//
// NativeWalk: the calling thread's native frames, from the function that asks outwards.
//
//   NativeWalk walk(CaptureRegisters());
//   for (NativeFrame frame; walk.Next(&frame);) ...
//   if (walk.truncated()) ...
//
// What compilers say about frames in .eh_frame is condensed to a rule of eight bytes per address
// (preload/unwind/rule.h) and remembered (preload/unwind/rule_cache.h); a frame then costs two
// additions and two loads. It works on any stack: of the thread, of a coroutine, of a signal
// handler, and out of that into what the signal has interrupted.
//
// Invariants, whatever the tables say
//   W1  Nothing is read that is not known to be readable (preload/unwind/stack_range.h).
//   W2  The stack pointer rises with each frame, but from a signal handler's stack to the one that
//       was interrupted; after kMostFrames the walk ends.
//   W3  A frame's address lies in code. Where the way on is not certain, the walk ends and is
//       truncated().
//
// Thread safety: any number of walks, in any threads and signal handlers. No lock, no allocation;
// no system call where the thread has been seen at that depth of that stack before. Needs
// PrepareModules() once (preload/unwind/loaded_module.h); before that a walk ends at once.
// Cost: docs/overhead.md.

#ifndef GMT_PRELOAD_UNWIND_NATIVE_WALK_H_
#define GMT_PRELOAD_UNWIND_NATIVE_WALK_H_

#include <stdint.h>

#include "preload/unwind/native_frame.h"
#include "preload/unwind/registers.h"
#include "preload/unwind/rule_cache.h"
#include "preload/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class NativeWalk {
 public:
  // The function that has captured `here` must not return before the walk is over.
  explicit NativeWalk(const Registers& here)
      : at_{here.pc, here.sp,        here.bp, StackRange::Around(here.sp), RuleCache::Epoch(), 0,
            true,    WalkEnd::kNone, here} {}

  // False when there are no more.
  bool Next(NativeFrame* frame) {
    const uint64_t pc = at_.exact ? at_.pc : at_.pc - 1;
    const Rule rule = RuleCache::Find(pc, at_.epoch);
    const uint64_t base = rule.from_bp() ? at_.bp : at_.sp;
    const uint64_t cfa = base + static_cast<uint64_t>(rule.offset());
    const uint64_t saved_bp = cfa + static_cast<uint64_t>(rule.saved_at());
    // Below the range only where a signal has come just behind an instruction that frees a frame.
    if (!rule.IsSimple() || cfa <= at_.sp || cfa > at_.range.high || (cfa & 7) != 0 ||
        saved_bp < at_.range.low || at_.count == kMostFrames) [[unlikely]] {
      const Other other = TakeOtherWay(at_, rule);
      at_ = other.next;
      *frame = other.frame;
      return other.frame.address != 0;
    }
    *frame = {at_.pc, cfa, at_.exact};
    if (rule.bp_at_cfa()) at_.bp = LoadWord(saved_bp);
    at_.pc = LoadWord(cfa - sizeof(uint64_t));
    at_.sp = cfa;
    at_.exact = false;
    ++at_.count;
    return true;
  }

  // Whether it ended before the outermost frame. Asked after Next() has returned false.
  bool truncated() const { return at_.end == WalkEnd::kTruncated; }

 private:
  static constexpr uint32_t kMostFrames = 288;  // what a stack in a recording holds, and our own

  // Kept apart from the walk, and passed by value: so it can live in registers.
  struct State {
    uint64_t pc, sp, bp;
    StackRange range;
    uint64_t epoch;
    uint32_t count;  // frames given so far
    bool exact;
    WalkEnd end;
    Registers start;
  };
  struct Other {
    State next;
    NativeFrame frame;  // address 0: none
  };
  static Other TakeOtherWay(State at, Rule rule);
  static bool Step(State* at, Rule rule, NativeFrame* frame);
  static bool StepToSimple(State* at, Rule rule, NativeFrame* frame);
  static bool StepOutOfSignal(State* at, NativeFrame* frame);
  static bool StepSlowly(State* at, NativeFrame* frame);
  static bool StepByFramePointer(State* at, NativeFrame* frame);

  State at_;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_UNWIND_NATIVE_WALK_H_
