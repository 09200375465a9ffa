#include "preload/unwind/native_walk.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/unwind/call_frame.h"
#include "preload/unwind/frame_pointer.h"
#include "preload/unwind/slow_walk.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

bool IsAligned(uint64_t address) { return (address & (kWord - 1)) == 0; }

bool Read(StackRange* range, uint64_t address, uint64_t* value) {
  if (!IsAligned(address) || !range->Reach(address)) return false;
  *value = LoadWord(address);
  return true;
}

uint64_t Plus(uint64_t base, int64_t offset) { return base + static_cast<uint64_t>(offset); }

}  // namespace

// Each step fills in the frame that `at` stands at and moves `at` to its caller. False: there is no
// way on; the frame has an address if it is one all the same.

// What the warm path does, with everything checked and the range extended.
bool NativeWalk::StepToSimple(State* at, Rule rule, NativeFrame* frame) {
  uint64_t cfa = Plus(rule.from_bp() ? at->bp : at->sp, rule.offset());
  if (rule.shape() == Rule::kLoaded) {
    if (!Read(&at->range, cfa, &cfa)) return false;
    cfa = Plus(cfa, rule.addend());
  }
  uint64_t pc = 0, bp = at->bp;
  if (cfa <= at->sp || !Read(&at->range, cfa - kWord, &pc)) return false;
  if (rule.bp_at_cfa() && !Read(&at->range, Plus(cfa, rule.saved_at()), &bp)) return false;
  if (rule.bp_at_bp() && !Read(&at->range, Plus(at->bp, rule.saved_at()), &bp)) return false;
  frame->cfa = cfa;
  at->pc = pc;
  at->sp = cfa;
  at->bp = bp;
  at->exact = false;
  return true;
}

bool NativeWalk::StepOutOfSignal(State* at, NativeFrame* frame) {
  uint64_t pc, sp, bp;
  if (!Read(&at->range, Plus(at->sp, kContextPc), &pc) ||
      !Read(&at->range, Plus(at->sp, kContextSp), &sp) ||
      !Read(&at->range, Plus(at->sp, kContextBp), &bp) || !IsAligned(sp)) {
    return false;
  }
  if (!at->range.Holds(sp)) at->range = StackRange::Around(sp);
  if (!at->range.Holds(sp)) return false;
  frame->cfa = sp;
  at->pc = pc;
  at->sp = sp;
  at->bp = bp;
  at->exact = true;
  return true;
}

// Once more from the start, with all registers.
bool NativeWalk::StepSlowly(State* at, NativeFrame* frame) {
  SlowWalk slow(at->start, StackRange::Around(at->start.sp));
  NativeFrame passed;
  for (uint32_t i = 0; i < at->count; ++i) {
    if (!slow.Next(&passed)) return false;
  }
  if (slow.pc() != at->pc || slow.sp() != at->sp) return false;
  const bool found = slow.Next(frame);
  if (slow.ended() || !found) {
    at->end = slow.truncated() ? WalkEnd::kTruncated : WalkEnd::kOutermost;
    return false;
  }
  at->pc = slow.pc();
  at->sp = slow.sp();
  at->bp = slow.bp();
  at->exact = slow.exact();
  at->range = slow.range();
  return true;
}

bool NativeWalk::StepByFramePointer(State* at, NativeFrame* frame) {
  Caller caller;
  if (!FindCallerByFramePointer(at->sp, at->bp, &at->range, &caller)) return false;
  frame->cfa = caller.cfa;
  at->pc = caller.pc;
  at->sp = caller.cfa;
  at->bp = caller.bp;
  at->exact = false;
  return true;
}

bool NativeWalk::Step(State* at, Rule rule, NativeFrame* frame) {
  bool described;
  switch (rule.shape()) {
    case Rule::kPlain:
    case Rule::kLoaded:
      return StepToSimple(at, rule, frame);
    case Rule::kSignal:
      return StepOutOfSignal(at, frame);
    case Rule::kSlow:
      return StepSlowly(at, frame);
    case Rule::kNoTable:
      return StepByFramePointer(at, frame);
    case Rule::kOutermost: {
      const uint64_t cfa = Plus(rule.from_bp() ? at->bp : at->sp, rule.offset());
      if (cfa > at->sp && IsAligned(cfa)) frame->cfa = cfa;
      at->end = WalkEnd::kOutermost;
      return false;
    }
    case Rule::kNowhere:
      if (at->exact || IsBehindCall(at->pc, &described)) return StepByFramePointer(at, frame);
      frame->address = 0;
      return false;
  }
  return false;
}

__attribute__((noinline, cold)) NativeWalk::Other NativeWalk::TakeOtherWay(State at, Rule rule) {
  NativeFrame frame = {at.pc, at.sp, at.exact};
  const StackRange known = at.range;
  if (at.end != WalkEnd::kNone) {
    frame.address = 0;
  } else if (at.pc == 0) {  // of code whose caller is nobody
    frame.address = 0;
    at.end = at.exact ? WalkEnd::kTruncated : WalkEnd::kOutermost;
  } else if (at.count == kMostFrames) {
    frame.address = 0;
    at.end = WalkEnd::kTruncated;
  } else if (!Step(&at, rule, &frame) && at.end == WalkEnd::kNone) {
    at.end = WalkEnd::kTruncated;
  }
  ++at.count;
  if (at.range.low != known.low || at.range.high != known.high) at.range.Remember();
  if (at.end != WalkEnd::kNone) {  // the rule of no address leads back here
    at.pc = 0;
    at.exact = false;
  }
  return {at, frame};
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
