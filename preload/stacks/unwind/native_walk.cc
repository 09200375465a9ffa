#include "preload/stacks/unwind/native_walk.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/stacks/unwind/call_frame.h"
#include "preload/stacks/unwind/frame_pointer.h"
#include "preload/stacks/unwind/slow_walk.h"

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

// The steps that are not on the fast path. Each fills in the current frame of `at` and moves `at`
// to its caller. Returns false if there is no next step; the frame then still has an address if it
// is valid.
struct NativeWalk::Steps {
  State* const at;
  const Registers& start;
  StackRange range;

  bool Take(Rule rule, NativeFrame* frame);
  // Same as the fast path, but checks everything and extends the range.
  bool Simple(Rule rule, NativeFrame* frame);
  bool OutOfSignal(NativeFrame* frame);
  bool Slow(NativeFrame* frame);
  bool ByFramePointer(NativeFrame* frame);
};

bool NativeWalk::Steps::Simple(Rule rule, NativeFrame* frame) {
  uint64_t cfa = Plus(rule.from_bp() ? at->bp : at->sp, rule.offset());
  if (rule.shape() == Rule::kLoaded) {
    if (!Read(&range, cfa, &cfa)) return false;
    cfa = Plus(cfa, rule.addend());
  }
  uint64_t caller = 0, bp = at->bp;
  if (cfa <= at->sp || !Read(&range, cfa - kWord, &caller)) return false;
  // Right after the frame pointer has been restored, the tables are wrong about it. If a caller
  // needs it, 0 makes the walk find no stack.
  if (rule.bp_at_cfa() && !Read(&range, Plus(cfa, rule.saved_at()), &bp)) bp = 0;
  if (rule.bp_at_bp() && !Read(&range, Plus(at->bp, rule.saved_at()), &bp)) bp = 0;
  frame->cfa = cfa;
  at->Set(caller, cfa, bp, false);
  return true;
}

bool NativeWalk::Steps::OutOfSignal(NativeFrame* frame) {
  uint64_t pc, sp, bp;
  if (!Read(&range, Plus(at->sp, kContextPc), &pc) ||
      !Read(&range, Plus(at->sp, kContextSp), &sp) ||
      !Read(&range, Plus(at->sp, kContextBp), &bp) || !IsAligned(sp)) {
    return false;
  }
  if (!range.Holds(sp)) range = StackRange::Around(sp);
  if (!range.Holds(sp)) return false;
  frame->cfa = sp;
  at->Set(pc, sp, bp, true);
  return true;
}

// Walks again from the start, with all registers.
bool NativeWalk::Steps::Slow(NativeFrame* frame) {
  SlowWalk slow(start, StackRange::Around(start.sp));
  NativeFrame passed;
  for (uint32_t i = 0; i < at->count; ++i) {
    if (!slow.Next(&passed)) return false;
  }
  if (slow.pc() != at->address() || slow.sp() != at->sp) return false;
  const bool found = slow.Next(frame);
  if (slow.ended() || !found) {
    at->end = slow.truncated() ? WalkEnd::kTruncated : WalkEnd::kOutermost;
    return false;
  }
  range = slow.range();
  at->Set(slow.pc(), slow.sp(), slow.bp_is_known() ? slow.bp() : 0, slow.exact());
  return true;
}

bool NativeWalk::Steps::ByFramePointer(NativeFrame* frame) {
  Caller caller;
  if (!FindCallerByFramePointer(at->sp, at->bp, &range, &caller)) return false;
  frame->cfa = caller.cfa;
  at->Set(caller.pc, caller.cfa, caller.bp, false);
  return true;
}

bool NativeWalk::Steps::Take(Rule rule, NativeFrame* frame) {
  bool described;
  switch (rule.shape()) {
    case Rule::kPlain:
    case Rule::kLoaded:
      return Simple(rule, frame);
    case Rule::kSignal:
      return OutOfSignal(frame);
    case Rule::kSlow:
      return Slow(frame);
    case Rule::kNoTable:
      return ByFramePointer(frame);
    case Rule::kOutermost: {
      const uint64_t cfa = Plus(rule.from_bp() ? at->bp : at->sp, rule.offset());
      if (cfa > at->sp && IsAligned(cfa)) frame->cfa = cfa;
      at->end = WalkEnd::kOutermost;
      return false;
    }
    case Rule::kNowhere:
      if (at->exact || IsBehindCall(at->behind, &described)) return ByFramePointer(frame);
      frame->address = 0;
      return false;
  }
  return false;
}

bool NativeWalk::FollowAnother(const KnownFrame& state) {
  const uint32_t room = kMaxFrames - at_.count;
  // The step may have found that less memory is readable than when the walk met `known_`.
  if (KnownFrame* caller = walks_->CallerOf(known_);
      caller != nullptr && caller->sp == state.sp && caller->behind == state.behind &&
      (caller->bp == state.bp || !caller->proof.bp_matters()) &&
      walks_->AreBelow(at_.high, walks_->IndexOf(caller))) {
    FollowFrom(caller);  // two loads do not prove the step, and it has led there
    return true;
  }
  for (KnownFrame* known = walks_->Find(state, at_.high, room); known != nullptr;
       known = walks_->Find(state, at_.high, room, known)) {
    if (!path_.Jump(known_, known)) continue;
    FollowFrom(known);
    return true;
  }
  return FollowFromOther(room);
}

// The frame that the walk has met first may be known with other callers, too, which have led to
// this state.
bool NativeWalk::FollowFromOther(uint32_t room) {
  constexpr int kMaxOthers = 4;
  KnownFrame* other = met_;
  for (int i = 0; i < kMaxOthers; ++i) {
    other = walks_->Find(*met_, at_.high, kMaxFrames, other);
    if (other == nullptr) return false;
    const KnownFrame* const proven = walks_->Follow(other);
    KnownFrame* known = other;
    while (known != proven && known->sp < at_.sp) known = walks_->CallerOf(known);
    if (known->sp != at_.sp || walks_->CountFrom(known) >= room) continue;
    other->bp = met_->bp;
    met_ = other;
    path_.Clear();
    FollowFrom(known);
    walks_->Prefer(other);
    return true;
  }
  return false;
}

bool NativeWalk::KeepEnded() {
  if (walks_ == nullptr || (met_ != nullptr && !known_->proof.is_last())) return false;
  KnownFrame* const last = met_ != nullptr ? known_ : new_end_ - 1;
  if (last < walks_->end() && met_ == nullptr) return false;
  const bool always = last->behind == 0 ||
                      RuleCache::Find(last->behind, at_.epoch).shape() == Rule::kOutermost;
  Keep();
  if (always) walks_->SetEndsAt(last);
  return always;
}

__attribute__((noinline, cold)) NativeWalk::StepResult NativeWalk::TakeSlowStep(State at,
                                                                                Registers start,
                                                                                Rule rule) {
  NativeFrame frame = {0, at.sp, at.exact};
  if (at.end != WalkEnd::kNone) return {at, frame};
  const StackRange known = {at.low, at.high};
  Steps steps = {&at, start, known};
  frame.address = at.address();
  if (frame.address == 0) {  // of code that has no caller
    at.end = at.exact ? WalkEnd::kTruncated : WalkEnd::kOutermost;
  } else if (at.count == kMaxFrames) {
    frame.address = 0;
    at.end = WalkEnd::kTruncated;
  } else if (!steps.Take(rule, &frame) && at.end == WalkEnd::kNone) {
    at.end = WalkEnd::kTruncated;
  }
  ++at.count;
  at.low = steps.range.low;
  at.high = steps.range.high;
  if (at.low != known.low || at.high != known.high) steps.range.Remember();
  if (at.end != WalkEnd::kNone) at.Set(0, at.sp, at.bp, false);  // address 0 has no rule
  return {at, frame};
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
