// preload/stacks/unwind/known_walks.h
//
// KnownWalks: the frames that a thread's earlier walks met, as a tree. Programs call the same
// functions again and again, at the same depth of the stack. A walk that arrives at a known frame
// proves with one or two comparisons per frame that the rest is still the same, instead of looking
// up rules.
//
//   malloc -> linear -> eval -> main -> (end)
//             gelu ----^                       each frame has one caller; a frame that has been
//   free --> linear -> eval -> loop -> main    reached from other callers is there several times
//
// Why that is a proof: a step depends only on the state of the walk (return address, stack pointer,
// frame pointer) and on memory. In equal states the same rule applies, because rules are of the
// same epoch. The rule then loads from the same two slots, which hold the return address and the
// frame pointer. If they hold what they held, the next state is equal too. Nothing is
// assumed about what the program did in between: if it returned and called something else, threw,
// or switched stacks, then a state or a slot differs, and the walk continues by rules.
//
// Most functions use the frame pointer for anything, and few rules use it to find the caller. Its
// value is compared only in frames from which a step further out depends on it.
//
// It also keeps, for each frame, the sum of the frames from there on, for the digest of a stack
// (session/stack_digest.h). So a walk that is known costs no more than its proof: it runs through a
// list of checks (KnownCheck), and does not look at the frames.
//
//   frames   - | walk | walk | walk ... | new | unused   a caller follows the frame that it has
//                                       end()            called, or is elsewhere
//   checks   unused | ... walk | walk | walk             in reverse order; in a walk, in the order
//                                                        of its frames
//
// A walk that leaves the known callers for a frame that is known, too, and as deep, is not kept
// again: its path in the tree jumps (KnownPath). If there is no room for another walk, everything
// is forgotten.
//
// There are a few for all threads, which are distributed among them. A state of one thread's stack
// is not one of another's. A walk that finds its tree in use does without: another thread is
// walking, or this is a signal handler that interrupted a walk.
//
// Thread safety: Acquire() from any thread and signal handler; the rest by its user only.

#ifndef GMT_PRELOAD_STACKS_UNWIND_KNOWN_WALKS_H_
#define GMT_PRELOAD_STACKS_UNWIND_KNOWN_WALKS_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/stack_range.h"
#include "session/stack_digest.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

// How to repeat the step from a frame to its caller: the place from which it loads the frame
// pointer, a multiple of eight in user space; 0 if it does not change that. The other bits are
// flags.
class StepProof {
 public:
  // Where the caller is kept.
  enum class Caller { kNext, kElsewhere, kNone };

  constexpr StepProof() = default;
  StepProof(uint64_t bp_slot, bool uses_bp) : word_(bp_slot | (uses_bp ? kUsesBp : 0)) {}
  // For a step that two loads do not prove.
  static constexpr StepProof None() {
    StepProof proof;
    proof.word_ = kIsNone;
    return proof;
  }
  // The same step, to a caller in which the frame pointer matters or does not.
  StepProof To(Caller caller, bool bp_matters) const {
    StepProof proof;
    proof.word_ = (word_ & ~kOfCaller) | (bp_matters ? kBpMatters : 0) |
                  (caller == Caller::kElsewhere ? kIsElsewhere : 0) |
                  (caller == Caller::kNone ? kIsLast : 0);
    return proof;
  }

  bool LoadsProveIt() const { return (word_ & (kIsNone | kIsLast)) == 0; }
  // The step finds the caller by the frame pointer.
  bool uses_bp() const { return (word_ & kUsesBp) != 0; }
  // A step from the caller, or further out, depends on the frame pointer there.
  bool bp_matters_to_caller() const { return (word_ & kBpMatters) != 0; }
  // The frame pointer matters to the caller, and the step changes it. If it does not change it, the
  // frame pointer matters to the frame, too, and has been compared there.
  bool compares_bp() const { return bp_matters_to_caller() && bp_slot() != 0; }
  // This one or a step further out depends on the frame pointer of the frame.
  bool bp_matters() const {
    return LoadsProveIt() && (uses_bp() || (bp_slot() == 0 && bp_matters_to_caller()));
  }
  uint64_t bp_slot() const { return word_ & ~kFlags; }
  // The caller follows the frame in memory.
  bool caller_follows() const { return (word_ & (kIsElsewhere | kIsLast)) == 0; }
  bool is_elsewhere() const { return (word_ & kIsElsewhere) != 0; }
  // No caller is known.
  bool is_last() const { return (word_ & kIsLast) != 0; }

 private:
  static constexpr uint64_t kIsNone = 1, kBpMatters = 2, kUsesBp = uint64_t{1} << 63,
                            kIsElsewhere = uint64_t{1} << 62, kIsLast = uint64_t{1} << 61,
                            kOfCaller = kBpMatters | kIsElsewhere | kIsLast,
                            kFlags = kOfCaller | kIsNone | kUsesBp;
  uint64_t word_ = 0;
};

// The state of a walk that has arrived at a frame, and how it continues.
struct KnownFrame {
  uint64_t sp;
  uint64_t behind;  // the return address, which was loaded from just below `sp`
  // The frame pointer when a walk arrived here last. A walk that has followed frames to here has
  // compared it if `proof.bp_matters()`, and has not set it otherwise.
  uint64_t bp;
  StepProof proof;
};

// A word of the stack that proves a step if it still has its value. Each step from a frame to its
// caller has one or two: the return address, after the frame pointer if that is compared. The
// checks of frames that follow each other do so, too, up to one that never holds. There, the walk
// goes on at a frame that is elsewhere, or must be continued by rules.
class KnownCheck {
 public:
  KnownCheck() = default;
  KnownCheck(uint64_t slot, uint64_t value) : slot_(slot), value_(value) {}
  static KnownCheck GoOnAt(uint32_t frame) { return {Zero(), uint64_t{frame} << 1}; }
  static KnownCheck StopAt(uint32_t frame) { return {Zero(), uint64_t{frame} << 1 | 1}; }

  bool Holds() const { return LoadWord(slot_) == value_; }
  // Returns the first one, from this on, that does not hold. Unrolled: four instructions, not six.
  const KnownCheck* FirstThatFails() const {
    for (const KnownCheck* check = this;; check += 4) {
      if (!check[0].Holds()) return check;
      if (!check[1].Holds()) return check + 1;
      if (!check[2].Holds()) return check + 2;
      if (!check[3].Holds()) return check + 3;
    }
  }
  // Whether it was made by GoOnAt() or StopAt(). Frames are numbered from 1, so value_ is not 0.
  bool never_holds() const { return slot_ == Zero(); }
  bool stops() const { return (value_ & 1) != 0; }
  uint32_t frame() const { return static_cast<uint32_t>(value_ >> 1); }

 private:
  static constexpr uint64_t kZero = 0;
  static uint64_t Zero() { return reinterpret_cast<uint64_t>(&kZero); }

  uint64_t slot_, value_;
};

class KnownWalks {
 public:
  static constexpr uint32_t kMaxFrames = 288;  // A walk has at most so many.
  static constexpr uint32_t kTrees = 8;

  // Returns that of the calling thread, with frames whose rules are of this epoch, and with room
  // for a walk. nullptr if it is in use, or while a library may be going away. To be released.
  static KnownWalks* Acquire(uint64_t epoch);
  void Release() { is_in_use_.store(false, std::memory_order_release); }
  // Its number, below kTrees. What its user keeps beside it is the user's alone, too.
  uint32_t number() const;

  // Where to put the new frames of a walk, innermost first, at most kMaxFrames. Their `proof` is
  // that of the step to the next one.
  KnownFrame* end() { return frames_ + used_; }
  // Keeps the frames from end() to `new_end`, which `outer` has called; nullptr: no caller is
  // known. Returns the innermost, which is `outer` if there are none.
  KnownFrame* Keep(const KnownFrame* new_end, KnownFrame* outer);
  // Appends the frames from `first` to `last` at `new_end`, because a walk continues differently
  // after `last`. Returns the new end.
  KnownFrame* Append(const KnownFrame* first, const KnownFrame* last, KnownFrame* new_end) const;
  void Forget();

  // Returns a frame at which a walk in this state has arrived, nullptr if there is none. `high`:
  // the end of readable memory; all frames further out are below it, and at most `room` with it.
  // `after`: a result, to get the next one of the same state.
  KnownFrame* Find(const KnownFrame& state, uint64_t high, uint32_t room,
                   const KnownFrame* after = nullptr);
  // Prepends the frame to those of its state, so that Find() returns it first.
  void Prefer(const KnownFrame* frame);

  // Returns the outermost frame to which the stack still leads from `frame` through known callers.
  // REQUIRES: the walk is at `frame`.
  [[gnu::always_inline]] KnownFrame* Follow(KnownFrame* frame) {
    while (true) {
      const KnownCheck* const check = checks_[links_[frame - frames_].check].FirstThatFails();
      if (!check->never_holds()) [[unlikely]]
        return FrameOf(frame, static_cast<uint32_t>(check - checks_));
      frame = frames_ + check->frame();
      if (check->stops()) return frame;
    }
  }
  // Returns the known caller; nullptr if there is none.
  KnownFrame* CallerOf(KnownFrame* frame) {
    const StepProof proof = frame->proof;
    if (proof.caller_follows()) [[likely]]
      return frame + 1;
    return proof.is_last() ? nullptr : frames_ + links_[frame - frames_].outer;
  }
  const KnownFrame* CallerOf(const KnownFrame* frame) const {
    return const_cast<KnownWalks*>(this)->CallerOf(const_cast<KnownFrame*>(frame));
  }
  // Returns the frame pointer at `last`, to which a walk has just followed frames from `first` on.
  uint64_t BpAt(const KnownFrame* first, const KnownFrame* last) const;

  // Whether all frames from that with number `index` on are below the end of readable memory.
  bool AreBelow(uint64_t high, uint32_t index) const {
    return frames_[links_[index].root].sp <= high;
  }
  // Whether a walk that arrives at the frame ends there, for a reason that does not depend on
  // memory.
  bool EndsAt(const KnownFrame* frame) const { return links_[frame - frames_].ends; }
  // REQUIRES: no caller of the frame is known.
  void SetEndsAt(const KnownFrame* frame) { links_[frame - frames_].ends = true; }

  // Returns how many of the frames from `frame` on have an address. The last one may have none: the
  // return address of a thread's first function.
  uint32_t CountFrom(const KnownFrame* frame) const { return links_[frame - frames_].depth; }
  // Returns their sum. REQUIRES: they are at most session::kMaxStackDepth, and a walk ends at the
  // last one.
  session::StackSum::Words SumFrom(const KnownFrame* frame) const {
    return sums_[frame - frames_];
  }

  // Returns the last one of the frames that follow each other in memory from `frame` on.
  const KnownFrame* LastOfPiece(const KnownFrame* frame) const {
    return frame->proof.is_elsewhere() ? frame : frames_ + links_[frame - frames_].outer;
  }
  // Numbers of frames, for their user.
  uint32_t IndexOf(const KnownFrame* frame) const {
    return static_cast<uint32_t>(frame - frames_);
  }
  const KnownFrame* FrameAt(uint32_t index) const { return frames_ + index; }

 private:
  static constexpr uint32_t kRoom = 1984;
  static constexpr uint32_t kChecks = 3072;                   // Most frames have one.
  static constexpr uint32_t kMaxChecks = 2 * kMaxFrames + 1;  // A walk has at most so many.
  static constexpr uint32_t kPlaceBits = 10;
  static constexpr uint32_t kMaxProbes = 16;

  struct Link {
    uint16_t outer;  // the caller if that is elsewhere, otherwise the last frame of this piece
    uint16_t next;   // another frame with the same hash (PlaceOf); 0: none
    uint16_t root;   // the outermost frame
    uint16_t check;  // the first check of the step to the caller
    uint16_t depth : 15;
    uint16_t ends : 1;
  };

  static uint64_t PlaceOf(const KnownFrame& state) {
    return (state.sp ^ state.behind << 20) * 0x9e3779b97f4a7c15 >> (64 - kPlaceBits);
  }
  void PrependCheck(const KnownCheck& check) { checks_[--first_check_] = check; }
  void PrependChecksOf(const KnownFrame& frame, const KnownFrame* caller);
  // Returns the frame to whose step a check belongs: `frame` or one of those that follow it.
  KnownFrame* FrameOf(KnownFrame* frame, uint32_t check);

  std::atomic<bool> is_in_use_{false};
  uint64_t epoch_ = 0;
  uint32_t used_ = 0;                     // frames_[0] is never used
  uint32_t first_check_ = 0;              // of those that are used
  uint16_t first_[1 << kPlaceBits] = {};  // a frame with each hash; 0: none
  KnownCheck checks_[kChecks] = {};
  KnownFrame frames_[kRoom] = {};
  Link links_[kRoom] = {};
  session::StackSum::Words sums_[kRoom] = {};  // each frame added to all further out
};

// The frames of a walk, innermost first: known callers, except that it jumps after some frames.
class KnownPath {
 public:
  class Piece;

  explicit KnownPath(const KnownWalks* walks = nullptr) : walks_(walks) {}

  // Continues with `to` after `from` instead of with its caller. Returns false, and changes
  // nothing, if that is not as deep, or after too many jumps. REQUIRES: the last frame so far is
  // `from`.
  bool Jump(const KnownFrame* from, const KnownFrame* to) {
    if (count_ == kMaxJumps || from->proof.is_last() ||
        walks_->CountFrom(walks_->CallerOf(from)) != walks_->CountFrom(to))
      return false;
    jumps_[count_++] = {from, to};
    return true;
  }
  void Clear() { count_ = 0; }
  // Appends the frames from `first` to `last`, as KnownWalks::Append().
  KnownFrame* Append(const KnownFrame* first, const KnownFrame* last, KnownFrame* new_end) const {
    for (uint32_t i = 0; i < count_; first = jumps_[i++].to)
      new_end = walks_->Append(first, jumps_[i].from, new_end);
    return walks_->Append(first, last, new_end);
  }

  void Begin(const KnownFrame* first) {
    first_ = first;
    next_ = 0;
  }
  const KnownFrame* first() const { return first_; }
  // Leaves out the innermost frame. Returns false if there is no other.
  bool DropFirst() {
    const bool jumps = next_ < count_ && first_ == jumps_[next_].from;
    first_ = jumps ? jumps_[next_++].to : walks_->CallerOf(first_);
    return first_ != nullptr;
  }
  // Leaves out innermost frames as long as is_left_out(frame), up to the piece in which there is
  // another one: `piece` is moved there. Returns false if there is no other.
  template <typename IsLeftOut>
  [[gnu::always_inline]] bool DropWhile(IsLeftOut is_left_out, Piece* piece) {
    do {
      for (const KnownFrame* frame = piece->first; frame <= piece->last; ++frame) {
        if (is_left_out(*frame)) continue;
        first_ = frame;
        next_ = piece->jump_;
        return true;
      }
    } while (piece->Advance());
    return false;
  }
  uint32_t Count() const { return walks_->CountFrom(first_); }
  // REQUIRES: as KnownWalks::SumFrom().
  session::StackSum Sum() const {
    session::StackSum::Words sum = walks_->SumFrom(first_);
    for (uint32_t i = next_; i < count_; ++i)
      sum += walks_->SumFrom(jumps_[i].to) - walks_->SumFrom(walks_->CallerOf(jumps_[i].from));
    return session::StackSum(sum);
  }

  // Iterates over pieces: frames that follow each other in memory.
  class Piece {
   public:
    explicit Piece(const KnownPath& path) : path_(&path), jump_(path.next_) {
      SetFirst(path.first_);
    }
    // Moves to the next one. Returns false if there is none.
    bool Advance() {
      if (next == nullptr) return false;
      if (jumps_) ++jump_;
      SetFirst(next);
      return true;
    }

    const KnownFrame *first, *last;
    const KnownFrame* next;  // the first one of the next piece; nullptr: none
    uint64_t end;            // the stack pointer of `next`, which is where the last frame ends

   private:
    friend class KnownPath;

    void SetFirst(const KnownFrame* frame) {
      const KnownWalks& walks = *path_->walks_;
      first = frame;
      last = walks.LastOfPiece(frame);
      const JumpTo* const jump = path_->jumps_ + jump_;
      jumps_ = jump_ < path_->count_ && jump->from >= first && jump->from <= last;
      if (jumps_) last = jump->from;
      next = jumps_ ? jump->to : walks.CallerOf(last);
      end = next == nullptr ? ~uint64_t{0} : next->sp;
    }

    const KnownPath* path_;
    uint32_t jump_;
    bool jumps_;
  };

 private:
  static constexpr uint32_t kMaxJumps = 8;
  struct JumpTo {
    const KnownFrame *from, *to;
  };

  const KnownWalks* walks_;
  const KnownFrame* first_ = nullptr;
  uint32_t count_ = 0, next_ = 0;
  JumpTo jumps_[kMaxJumps];
};

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_KNOWN_WALKS_H_
