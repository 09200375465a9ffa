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
//   frames   unused | changed since the walk before | proved to be the same | end
//                     begin()                                                 end()
//
// It also keeps the sum of the frames for the digest of a stack (session/stack_digest.h). What is
// subtracted and added are the frames that have changed.
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

// The state of a walk that has arrived at a frame, and how to repeat the step to it.
struct KnownFrame {
  uint64_t sp;
  uint64_t behind;  // the return address, which was loaded from just below `sp`
  uint64_t bp;
  // The place that `bp` was loaded from; the member above if the step did not change it. nullptr if
  // two loads do not prove the step.
  const uint64_t* bp_slot;

  // Returns whether the frame further in still leads here.
  [[gnu::always_inline]] bool IsStillNext() const {
    return bp_slot != nullptr && LoadWord(sp - sizeof(uint64_t)) == behind &&
           LoadWord(reinterpret_cast<uint64_t>(bp_slot)) == bp;
  }
};

class LastWalk {
 public:
  static constexpr uint32_t kMaxFrames = 288;
  static constexpr uint32_t kWalks = 32;

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

  // Room for the frames that the walk reaches by rules, at most kMaxFrames.
  KnownFrame* changed() { return changed_; }
  // Appends the frames from `met` to `last` to the changed ones, because the walk continues
  // differently after `last`. Returns their new end.
  static KnownFrame* Append(const KnownFrame* met, const KnownFrame* last, KnownFrame* changed_end);

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
  session::StackSum SumFrom(const KnownFrame* first);

 private:
  void RemoveUntil(const KnownFrame* frame);

  std::atomic<bool> is_in_use_{false};
  bool is_whole_ = false;
  uint32_t first_ = 0;
  uint32_t summed_ = 0;  // the first frame that is in sum_
  uint64_t epoch_ = 0;
  session::StackSum sum_;
  KnownFrame frames_[kMaxFrames + 1] = {};
  KnownFrame changed_[kMaxFrames] = {};
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_LAST_WALK_H_
