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
// costs two additions and two loads. From a frame of the thread's earlier walks on, it is only
// checked that the rest is still the same (preload/stacks/unwind/known_walks.h). A walk works on
// any stack: a thread's, a coroutine's, a signal handler's, and from there into the interrupted
// code.
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

#include "preload/stacks/unwind/known_walks.h"
#include "preload/stacks/unwind/native_frame.h"
#include "preload/stacks/unwind/registers.h"
#include "preload/stacks/unwind/rule_cache.h"
#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

class NativeWalk {
 public:
  enum class Known { kNothing, kEarlierWalks };

  // The function that has captured `here` must not return before the walk ends. `known`: whether to
  // use the frames of the thread's earlier walks, and to keep this one's.
  explicit NativeWalk(const Registers& here, Known known = Known::kNothing) : start_(here) {
    const StackRange range = StackRange::Around(here.sp);
    at_ = {here.pc + 1,        here.sp, here.bp, range.low,     range.high,
           RuleCache::Epoch(), 0,       true,    WalkEnd::kNone};
    if (known == Known::kNothing) return;
    walks_ = KnownWalks::Acquire(at_.epoch);
    if (walks_ == nullptr) return;
    new_end_ = walks_->end();
    path_ = KnownPath(walks_);
  }
  [[gnu::always_inline]] ~NativeWalk() {
    if (walks_ != nullptr) KeepAndRelease();
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
        if (proven_ == nullptr) proven_ = walks_->Follow(known_);
        KnownFrame* known = known_;
        bool goes_on = true;
        while (goes_on && known != proven_) {
          const uint64_t address = known->behind;
          known = walks_->CallerOf(known);
          goes_on = use(NativeFrame{address, known->sp, false});
        }
        known_ = known;
        if (!goes_on) return false;
        StopFollowing();
      }
      NativeFrame frame;
      if (!NextByRule(&frame)) return true;
      if (!use(frame)) return false;
    }
  }

  // Walks to the outermost frame and keeps all frames, without reporting any: path() then has all
  // but the first, valid until this walk is destroyed. `second`: of the function that has captured
  // the registers. Returns false if that is impossible: a signal has interrupted a frame, the walk
  // is truncated, or it does without earlier walks. REQUIRES: no frame has been returned.
  [[gnu::always_inline]] bool KeepAll(const CallerRegisters& second) {
    if (walks_ == nullptr) return false;
    at_.Set(second.behind, second.sp, second.bp, false);
    at_.count = 1;
    Note(StepProof::None());
    while (walks_ != nullptr) {
      if (follows_) {
        known_ = walks_->Follow(known_);
        if (walks_->EndsAt(known_)) {
          Keep();
          return true;
        }
        StopFollowing();
      }
      NativeFrame frame;
      if (!NextByRule(&frame)) return at_.end == WalkEnd::kOutermost && KeepEnded();
      if (at_.exact) return false;
    }
    return false;
  }
  KnownPath* path() { return &path_; }
  // nullptr: it does without earlier walks.
  const KnownWalks* walks() const { return walks_; }

  // Returns whether the walk ended before the outermost frame. Valid after there were no more
  // frames.
  bool truncated() const { return at_.end == WalkEnd::kTruncated; }

 private:
  [[gnu::always_inline]] void StopFollowing() {
    follows_ = false;
    at_.count += walks_->CountFrom(from_) - walks_->CountFrom(known_);
    at_.Set(known_->behind, known_->sp, walks_->BpAt(from_, known_), false);
  }

  // Keeps the frames so far.
  [[gnu::always_inline]] void Keep() {
    KnownFrame* first = met_;
    if (new_end_ != walks_->end()) [[unlikely]] {
      first = walks_->Keep(new_end_, met_);
      new_end_ = walks_->end();
    }
    path_.Begin(first);
  }
  // The same after the last frame. Returns whether a walk that meets that always ends there.
  bool KeepEnded();
  void KeepAndRelease() {
    Keep();
    walks_->Release();
    walks_ = nullptr;
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
      // A usual step, but to memory that was not yet known to be readable.
      const bool is_usual = rule.IsSimple() && result.next.sp == cfa && saved_bp >= at_.sp;
      const StepProof proof = is_usual ? ProofOf(rule, saved_bp, at_.exact) : StepProof::None();
      at_ = result.next;
      *frame = result.frame;
      if (walks_ != nullptr && at_.end == WalkEnd::kNone) NoteSlowStep(proof);
      return result.frame.address != 0;
    }
    *frame = {at_.address(), cfa, at_.exact};
    const StepProof proof = ProofOf(rule, saved_bp, at_.exact);
    if (rule.bp_at_cfa()) at_.bp = LoadWord(saved_bp);
    at_.behind = LoadWord(cfa - sizeof(uint64_t));
    at_.sp = cfa;
    at_.exact = false;
    ++at_.count;
    if (walks_ != nullptr) Note(proof);
    return true;
  }
  // The state of an interrupted frame is not kept, so the step from it cannot be repeated.
  static StepProof ProofOf(Rule rule, uint64_t saved_bp, bool is_exact) {
    const bool is_usual = !is_exact && (rule.saved_at() & 7) == 0 && rule.saved_at() <= 0;
    return is_usual ? StepProof(rule.bp_at_cfa() ? saved_bp : 0, rule.from_bp())
                    : StepProof::None();
  }

  // The depth of a recorded stack, plus our own frames.
  static constexpr uint32_t kMaxFrames = KnownWalks::kMaxFrames;

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

  // Notes that a step has arrived at `at_`. From a known frame on, follows its callers.
  [[gnu::always_inline]] void Note(StepProof proof) {
    const KnownFrame state = {at_.sp, at_.behind, at_.bp, StepProof::None()};
    if (met_ != nullptr) [[unlikely]] {
      if (FollowAnother(state)) return;
      LeaveKnown();
    }
    if (new_end_ != walks_->end()) new_end_[-1].proof = proof;
    KnownFrame* const known = walks_->Find(state, at_.high, kMaxFrames - at_.count);
    if (known == nullptr) {
      *new_end_++ = state;
      return;
    }
    met_ = known;
    FollowFrom(known);
  }
  [[gnu::always_inline]] void FollowFrom(KnownFrame* known) {
    known->bp = at_.bp;
    from_ = known_ = known;
    proven_ = nullptr;
    follows_ = true;
  }
  // The walk has stopped following at `known_`, and has arrived at `state` from there. Returns
  // whether that is known, too.
  bool FollowAnother(const KnownFrame& state);
  bool FollowFromOther(uint32_t room);
  // The walk continues differently from the known ones.
  void LeaveKnown() {
    new_end_ = path_.Append(met_, known_, new_end_);
    path_.Clear();
    met_ = nullptr;
  }
  // A frame that a signal has interrupted is not kept, and neither are those further out.
  [[gnu::always_inline]] void NoteSlowStep(StepProof proof) {
    if (at_.exact) return KeepAndRelease();
    Note(proof);
  }

  const Registers start_;
  State at_;
  KnownWalks* walks_ = nullptr;    // nullptr: of no use for this walk
  KnownFrame* new_end_ = nullptr;  // the end of this walk's frames that were not known
  KnownFrame* met_ = nullptr;      // the known frame that is the caller of the last of those
  KnownFrame* from_ = nullptr;     // where the walk has begun to follow it, or one further out
  KnownFrame* known_ = nullptr;    // while following: the frame that Next() returns next
  KnownFrame* proven_ = nullptr;   // the outermost to which the stack leads; nullptr: not known yet
  KnownPath path_;                 // the known frames from `met_` on
  bool follows_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_WALK_H_
