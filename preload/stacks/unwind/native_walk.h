// preload/stacks/unwind/native_walk.h
//
// NativeWalk: walks the calling thread's native frames, starting at the function that creates it.
//
//   NativeWalk walk(CaptureRegisters());
//   for (NativeFrame frame; walk.Next(&frame);) ...     or walk.ForEach(...)
//   if (walk.truncated()) ...
//
// The compilers' frame descriptions in .eh_frame are condensed to a rule of eight bytes per address
// (preload/stacks/unwind/rule.h) and cached (preload/stacks/unwind/rule_cache.h). A frame then
// costs two additions and two loads. From a frame of the thread's last walk on, it is only checked
// that the rest is still the same (preload/stacks/unwind/last_walk.h). A walk works on any stack: a
// thread's, a coroutine's, a signal handler's, and from there into the interrupted code.
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

#include "preload/stacks/unwind/last_walk.h"
#include "preload/stacks/unwind/native_frame.h"
#include "preload/stacks/unwind/registers.h"
#include "preload/stacks/unwind/rule_cache.h"
#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class NativeWalk {
 public:
  enum class Known { kNothing, kLastWalk };

  // The function that has captured `here` must not return before the walk ends. `known`: whether to
  // use the frames of the thread's last walk, and to keep this one's.
  explicit NativeWalk(const Registers& here, Known known = Known::kNothing) : start_(here) {
    const StackRange range = StackRange::Around(here.sp);
    at_ = {here.pc + 1,        here.sp, here.bp, range.low,     range.high,
           RuleCache::Epoch(), 0,       true,    WalkEnd::kNone};
    if (known == Known::kNothing) return;
    last_ = LastWalk::Acquire(at_.epoch);
    if (last_ == nullptr) return;
    known_ = last_->begin();
    changed_ = last_->changed();
  }
  [[gnu::always_inline]] ~NativeWalk() {
    if (last_ == nullptr) return;
    last_->Keep(changed_, met_);
    last_->Release();
  }
  NativeWalk(const NativeWalk&) = delete;
  NativeWalk& operator=(const NativeWalk&) = delete;

  // Returns false if there are no more frames.
  bool Next(NativeFrame* frame) {
    return !ForEach([frame](NativeFrame next) {
      *frame = next;
      return false;
    });
  }
  // Calls use(frame) for each frame, until that returns false. Returns whether it never did. Faster
  // than Next(), because the loop over known frames has few variables, which stay in registers.
  template <typename Use>
  [[gnu::always_inline]] bool ForEach(Use use) {
    while (true) {
      if (follows_) {
        KnownFrame* known = known_;
        bool goes_on = true;
        for (; goes_on && known[1].IsStillNext(); ++known)
          goes_on = use(NativeFrame{known->behind, known[1].sp, false});
        known_ = known;
        if (!goes_on) return false;
        StopFollowing();
      }
      NativeFrame frame;
      if (!NextByRule(&frame)) return true;
      if (!use(frame)) return false;
    }
  }

  // Walks to the outermost frame and keeps all frames, without reporting any. Returns nullptr if
  // that is impossible: a signal has interrupted one, the walk is truncated, or it does not use the
  // last walk. Otherwise the frames are result->begin() to result->end(), valid until this walk is
  // destroyed. REQUIRES: no frame has been returned.
  [[gnu::always_inline]] LastWalk* KeepAll() {
    // Walks by rules, except from the frames on from which it finds replays.
    KnownFrame* by_rules_from = nullptr;
    bool finds_replays = true;
    while (last_ != nullptr) {
      if (follows_) {
        if (!finds_replays) last_->RememberReplay(by_rules_from, changed_);
        finds_replays = true;
        KnownFrame* known = known_;
        while (known[1].IsStillNext()) ++known;
        known_ = known;
        if (known + 1 == last_->end() && last_->is_whole()) return Kept();
        StopFollowing();
      }
      NativeFrame frame;
      if (!NextByRule(&frame)) return at_.end == WalkEnd::kOutermost ? KeptWhole() : nullptr;
      if (at_.exact) return nullptr;
      if (!finds_replays || follows_ || last_ == nullptr || at_.end != WalkEnd::kNone) continue;
      by_rules_from = changed_ - 1;
      changed_ = last_->Replay(by_rules_from, known_, at_.high, kMaxFrames - at_.count);
      const KnownFrame& reached = changed_[-1];
      finds_replays = &reached != by_rules_from;
      at_.count += static_cast<uint32_t>(&reached - by_rules_from);
      at_.Set(reached.behind, reached.sp, reached.bp, false);
    }
    return nullptr;
  }

  // Returns whether the walk ended before the outermost frame. Valid after there were no more
  // frames.
  bool truncated() const { return at_.end == WalkEnd::kTruncated; }

 private:
  [[gnu::always_inline]] LastWalk* Kept() {
    last_->Keep(changed_, met_);
    changed_ = last_->changed();
    met_ = last_->begin();
    return last_;
  }
  // The walk has ended after the last frame.
  [[gnu::always_inline]] LastWalk* KeptWhole() {
    if (last_ == nullptr || (met_ != nullptr && known_ + 1 != last_->end())) return nullptr;
    LastWalk* const kept = Kept();
    if (!AlwaysEndsAfter(kept, at_.epoch)) return nullptr;
    kept->SetWhole();
    return kept;
  }
  // Returns whether a walk that meets the last of these frames ends there, whatever is in memory.
  static bool AlwaysEndsAfter(LastWalk* kept, uint64_t epoch);

  [[gnu::always_inline]] void StopFollowing() {
    follows_ = false;
    at_.count += static_cast<uint32_t>(known_ - met_);
    at_.Set(known_->behind, known_->sp, LastWalk::BpAt(met_, known_), false);
  }
  [[gnu::always_inline]] bool NextByRule(NativeFrame* frame) {
    const Rule rule = RuleCache::Find(at_.behind, at_.epoch);
    const uint64_t base = rule.from_bp() ? at_.bp : at_.sp;
    const uint64_t cfa = base + static_cast<uint64_t>(rule.offset());
    const uint64_t saved_bp = cfa + static_cast<uint64_t>(rule.saved_at());
    // The CFA is below the range only if a signal arrived just after an instruction that frees a
    // frame.
    if (!rule.IsSimple() || cfa <= at_.sp || cfa > at_.high || (cfa & 7) != 0 ||
        saved_bp < at_.sp || at_.count == kMaxFrames) [[unlikely]] {
      const StepResult result = TakeSlowStep(at_, start_, rule);
      const bool rises = result.next.sp > at_.sp && result.next.high == at_.high;
      at_ = result.next;
      *frame = result.frame;
      if (last_ != nullptr && at_.end == WalkEnd::kNone) NoteSlowStep(rises);
      return result.frame.address != 0;
    }
    *frame = {at_.address(), cfa, at_.exact};
    const bool was_exact = at_.exact;
    if (rule.bp_at_cfa()) at_.bp = LoadWord(saved_bp);
    at_.behind = LoadWord(cfa - sizeof(uint64_t));
    at_.sp = cfa;
    at_.exact = false;
    ++at_.count;
    // The state of an interrupted frame is not kept, so the step from it cannot be repeated.
    if (last_ != nullptr) {
      const bool is_usual = !was_exact && (rule.saved_at() & 7) == 0 && rule.saved_at() <= 0;
      Note(is_usual ? StepProof(rule.bp_at_cfa() ? saved_bp : 0, rule.from_bp())
                    : StepProof::None());
    }
    return true;
  }

  // The depth of a recorded stack, plus our own frames.
  static constexpr uint32_t kMaxFrames = LastWalk::kMaxFrames;

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

  // Notes that a step has arrived at `at_`. From a frame of the last walk on, follows that.
  [[gnu::always_inline]] void Note(StepProof proof) {
    if (met_ != nullptr) [[unlikely]]
      LeaveLastWalk();
    while (known_->sp < at_.sp) ++known_;
    const bool bp_matters = known_->proof.bp_matters();
    if (known_->sp == at_.sp && known_->behind == at_.behind &&
        (known_->bp == at_.bp || !bp_matters) && last_->IsBelow(at_.high) &&
        last_->end() - known_ <= kMaxFrames - at_.count) {
      known_->proof = proof.WithBpMatters(bp_matters);
      known_->bp = at_.bp;
      met_ = known_;
      follows_ = true;
    } else {
      *changed_++ = {at_.sp, at_.behind, at_.bp, proof};
    }
  }
  // `rises`: the step has stayed on the stack.
  [[gnu::always_inline]] void NoteSlowStep(bool rises) {
    if (!at_.exact) return Note(StepProof::None());
    if (met_ != nullptr) LeaveLastWalk();
    if (rises) return;
    last_->Forget();
    last_->Release();
    last_ = nullptr;
  }
  // The walk continues differently from the last one.
  [[gnu::always_inline]] void LeaveLastWalk() {
    changed_ = LastWalk::Append(met_, known_, changed_);
    met_ = nullptr;
    ++known_;
  }

  const Registers start_;
  State at_;
  LastWalk* last_ = nullptr;       // nullptr: of no use for this walk
  KnownFrame* known_ = nullptr;    // while following it: the frame that Next() returns next
  KnownFrame* changed_ = nullptr;  // the end of the frames that were not in it
  KnownFrame* met_ = nullptr;      // the frame from which this walk has followed it
  bool follows_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_
