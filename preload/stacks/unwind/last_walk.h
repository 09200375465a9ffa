// preload/stacks/unwind/last_walk.h
//
// LastWalk: the frames that a thread's last walk met. Two consecutive walks of a thread share most
// of their outer frames. A walk that arrives at a frame of the last one proves with two loads per
// frame that the rest is still the same, instead of looking up rules.
//
// Why that is a proof: a step depends only on the state of the walk (return address, stack pointer,
// frame pointer) and on memory. In equal states the same rule applies, because rules are of the
// same epoch. The rule then loads from the same two places, the slot of the return address and that
// of the frame pointer. If they hold what they held, the next state is equal too. Nothing is
// assumed about what the program did in between: if it returned and called something else, threw,
// or switched stacks, then a state or a slot differs, and the walk continues by rules.
//
// Most functions use the frame pointer for anything, and few rules use it to find the caller. Its
// value is compared only in frames from which a step further out depends on it.
//
//   frames   unused | changed since the walk before | proved to be the same | end
//                     begin()                                                 end()
//
// Programs call the same functions again and again, at the same depth of the stack. The changed
// frames of earlier walks are therefore kept, too, as *replays*: a walk that arrives by a rule at
// the first frame of one takes the further steps from it, with the same proof for each.
//
// It also keeps, for each frame, the sum of the frames from there on, for the digest of a stack
// (session/stack_digest.h).
//
// There are a few for all threads, chosen by thread. If another thread used it last, it holds
// frames of that thread's stack, and no state is found in it. A walk that finds it in use does
// without: another thread is walking, or this is a signal handler that interrupted a walk.
//
// Thread safety: Acquire() from any thread and signal handler; the rest by its user only.

#ifndef GMT_PRELOAD_STACKS_UNWIND_LAST_WALK_H_
#define GMT_PRELOAD_STACKS_UNWIND_LAST_WALK_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/stack_range.h"
#include "session/stack_digest.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

// How a step arrives at a frame: the place from which it loads the frame pointer, a multiple of
// eight in user space; 0 if it does not change that. The other bits are flags.
class StepProof {
 public:
  constexpr StepProof() = default;
  StepProof(uint64_t bp_slot, bool uses_bp) : word_(bp_slot | (uses_bp ? kUsesBp : 0)) {}
  // For a step that two loads do not prove.
  static constexpr StepProof None() {
    StepProof proof;
    proof.word_ = kIsNone | kIsSpecial;
    return proof;
  }

  // Two loads prove it, and nothing depends on the frame pointer as far as this one shows.
  bool has_no_flags() const { return (word_ & kFlags) == 0; }
  bool LoadsProveIt() const { return (word_ & kIsNone) == 0; }
  // Two loads do not prove it, or the frame pointer that it arrives with matters.
  bool is_special() const { return (word_ & kIsSpecial) != 0; }
  // The step has found the caller by the frame pointer.
  bool uses_bp() const { return (word_ & kUsesBp) != 0; }
  // A step further out depends on the frame pointer that this one arrives with.
  bool bp_matters() const { return (word_ & kBpMatters) != 0; }
  // This one or a step further out depends on the frame pointer of the frame further in.
  bool bp_matters_further_in() const {
    return LoadsProveIt() && (uses_bp() || (bp_slot() == 0 && bp_matters()));
  }
  uint64_t bp_slot() const { return word_ & ~kFlags; }
  StepProof WithBpMatters(bool matters) const {
    StepProof proof;
    proof.word_ = (word_ & ~(kBpMatters | kIsSpecial)) | (word_ & kIsNone) / kIsNone * kIsSpecial |
                  (matters ? kBpMatters | kIsSpecial : 0);
    return proof;
  }

 private:
  static constexpr uint64_t kIsSpecial = 1, kIsNone = 2, kBpMatters = 4,
                            kUsesBp = uint64_t{1} << 63,
                            kFlags = kIsSpecial | kIsNone | kBpMatters | kUsesBp;
  uint64_t word_ = 0;
};

// The state of a walk that has arrived at a frame, and how to repeat the step to it.
struct KnownFrame {
  uint64_t sp;
  uint64_t behind;  // the return address, which was loaded from just below `sp`
  // The frame pointer. After a walk has followed the frame, it is valid if `proof.bp_matters()`.
  uint64_t bp;
  StepProof proof;

  // Returns whether the frame further in still leads here.
  [[gnu::always_inline]] bool IsStillNext() const {
    if (proof.is_special() && !BpIsStillTheSame()) [[unlikely]]
      return false;
    return LoadWord(sp - sizeof(uint64_t)) == behind;
  }

 private:
  [[gnu::always_inline]] bool BpIsStillTheSame() const {
    if (!proof.LoadsProveIt()) return false;
    // If the step does not change it, it matters further in, too, and has been compared there.
    return proof.bp_slot() == 0 || LoadWord(proof.bp_slot()) == bp;
  }
};

class LastWalk {
 public:
  static constexpr uint32_t kMaxFrames = 288;
  static constexpr uint32_t kWalks = 16;

  // Returns that of the calling thread, with frames whose rules are of this epoch. nullptr if it is
  // in use, or while a library may be going away. To be released.
  static LastWalk* Acquire(uint64_t epoch);
  void Release() { is_in_use_.store(false, std::memory_order_release); }
  // Its number, below kWalks. What its user keeps beside it is the user's alone, too.
  uint32_t number() const;

  // The frames, innermost first. Their stack pointers rise; that of *end() is above all others.
  KnownFrame* begin() { return frames_ + first_; }
  KnownFrame* end() { return frames_ + kMaxFrames; }
  // Returns whether all frames lie below this address.
  bool IsBelow(uint64_t high) const { return frames_[kMaxFrames - 1].sp <= high; }

  // Room for the frames that are not those of the last walk, at most kMaxFrames.
  KnownFrame* changed() { return changed_; }
  // Appends the frames from `met` to `last` to the changed ones, because the walk continues
  // differently after `last`. Returns their new end.
  static KnownFrame* Append(const KnownFrame* met, const KnownFrame* last, KnownFrame* changed_end);

  // `begun`: the last changed frame, at which the walk has arrived by a rule. Appends the frames to
  // which an earlier walk has got from there, as long as the steps are still the same and lead to
  // none of the frames from `known` on. Returns the new end of the changed ones. `high`: the end of
  // readable memory; `room`: for so many frames.
  KnownFrame* Replay(KnownFrame* begun, const KnownFrame* known, uint64_t high,
                     uint32_t room) const;
  // Remembers the frames after `begun` that a walk has reached by rules, up to the end of the
  // changed ones, unless there are none.
  void RememberReplay(const KnownFrame* begun, const KnownFrame* changed_end);
  // Returns the frame pointer at `known`, up to which the walk has followed this one from `met` on.
  static uint64_t BpAt(const KnownFrame* met, const KnownFrame* known);

  // Keeps the changed frames, followed by those from `met` on, together at most kMaxFrames; without
  // `met`, only the former.
  void Keep(const KnownFrame* changed_end, KnownFrame* met);
  void Forget();

  // Whether the last walk ended with the last of the frames, for a reason that does not depend on
  // memory: a walk that meets that frame ends there, too.
  bool is_whole() const { return is_whole_; }
  void SetWhole() { is_whole_ = true; }

  // Returns how many of the frames from `frame` on have an address. The last one may have none: the
  // return address of a thread's first function.
  uint32_t CountFrom(const KnownFrame* frame) const {
    return static_cast<uint32_t>(frames_ + kMaxFrames - frame) -
           (frames_[kMaxFrames - 1].behind == 0 ? 1 : 0);
  }
  // Returns the sum of the frames from `first` on. REQUIRES: they are at most
  // session::kMaxStackDepth, and is_whole().
  const session::StackSum& SumFrom(const KnownFrame* first) const { return sums_[first - frames_]; }

 private:
  // Frames that walks have reached by rules, one after the other. The first is the key.
  struct Remembered {
    static constexpr uint32_t kMaxFrames = 24;
    uint32_t count;  // 0: unused
    KnownFrame frames[kMaxFrames];
  };
  static constexpr uint32_t kReplayBits = 5;

  static uint64_t PlaceOf(const KnownFrame& first) {
    return (first.sp ^ first.behind << 20) * 0x9e3779b97f4a7c15 >> (64 - kReplayBits);
  }

  std::atomic<bool> is_in_use_{false};
  bool is_whole_ = false;
  uint32_t first_ = 0;
  uint64_t epoch_ = 0;
  KnownFrame frames_[kMaxFrames + 1] = {};
  session::StackSum sums_[kMaxFrames + 1];  // for each frame, its sum with all further out
  KnownFrame changed_[kMaxFrames] = {};
  Remembered replays_[1 << kReplayBits] = {};
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_LAST_WALK_H_
