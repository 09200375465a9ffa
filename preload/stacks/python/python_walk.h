// preload/stacks/python/python_walk.h
//
// PythonWalk: walks this thread's Python frames, innermost first, by reading the interpreter's own
// frame structures without the GIL. Only the thread itself pushes and pops its frames, each frame
// owns its code object, and names and line tables never change, so the data cannot change during
// the walk. The walk does not allocate, change reference counts, or run Python code.
//
// The interpreter's eval function runs one or several Python frames; these form a *run*. It keeps a
// record on its own stack (the run's marker). The marker's address determines between which native
// frames the run belongs:
//
//   native (innermost first)     stack          Python
//   cudaMalloc                   |
//   torch::empty                 |
//   eval function                | marker 1 --> run 1: forward, <lambda>
//   slot_tp_call, PyObject_Call  |
//   eval function                | marker 2 --> run 2: train, <module>
//   main                         |
//
//   PythonWalk python(interpreter);
//   python.Begin();
//   for (each native frame, innermost first) {
//     note it;
//     if (python.IsInterpretedBy(native, where it begins)) while (python.Next(&frame)) note frame;
//   }
//
// Frames that are left when the native frames have ended (python.done() is false) could not be
// placed. Frames that the public functions hide are left out here too: the interpreter's own, and
// those that have not begun.
//
// Thread safety: one walk on one thread; in signal handlers, but see Interpreter::OwnsAddress.
// Cost: docs/overhead.md. Frames are loaded in batches, by code that is compiled for each version's
// layout: each load of a frame depends on the previous one, and the other work overlaps with it.

#ifndef GMT_PRELOAD_STACKS_PYTHON_PYTHON_WALK_H_
#define GMT_PRELOAD_STACKS_PYTHON_PYTHON_WALK_H_

#include <stdint.h>
#include <string.h>

#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/unwind/native_frame.h"

namespace gmt::preload {

struct PythonFrame {
  uint64_t code;    // PyCodeObject*
  uint32_t offset;  // of the instruction in its bytecode, in units of 2 bytes
};

class PythonWalk {
 public:
  // Creates a walk that has read nothing: done().
  explicit PythonWalk(const Interpreter& python) : python_(python) {}
  PythonWalk(const PythonWalk&) = delete;
  PythonWalk& operator=(const PythonWalk&) = delete;

  // Starts at this thread's innermost frame. Must not be called where a signal has interrupted the
  // interpreter's own text.
  void Begin() {
    const Interpreter::Thread thread = python_.CurrentThread();
    unreadable_ = thread.unreadable;
    if (thread.state != 0) BeginAt(thread.state);
  }

  // Returns whether no frames are left.
  bool done() const { return next_ == count_ && frame_ == 0; }

  // Returns whether the thread is known to the interpreter but its frames cannot be read (now, or
  // at all).
  bool unreadable() const { return unreadable_; }

  // The stack address of the next run's marker: the run follows the native frame that contains it.
  // kNoMarker if no run is left, or its marker is unknown.
  static constexpr uint64_t kNoMarker = ~uint64_t{0};
  uint64_t marker() const {
    return next_ == count_ || !has_markers() || markers_[run_] == 0 ? kNoMarker : markers_[run_];
  }
  // If false, each native frame of the eval function runs one Python frame.
  bool has_markers() const { return python_.layout().chain != FrameChain::kObjects; }

  // Returns whether the next run follows this native frame, which occupies the stack from `low` on.
  // (If the walk moves to another stack, a signal's or a coroutine's, the addresses jump, and no
  // marker lies in between.)
  bool IsInterpretedBy(const NativeFrame& native, uint64_t low) const {
    if (next_ == count_) return false;
    if (!has_markers()) return python_.IsEval(native.exact ? native.address : native.address - 1);
    const uint64_t where = marker();
    return where >= low && where < native.cfa;
  }

  // Returns the next frame of the run; returns false at the run's end and then moves to the next
  // run.
  bool Next(PythonFrame* frame) {
    if (next_ == run_end_ && !TurnToNextRun()) return false;
    // Copied member by member, as they were stored: a load that spans two stores would wait for
    // both.
    frame->code = frames_[next_].code;
    frame->offset = frames_[next_++].offset;
    return true;
  }
  // Same, but returns all frames at hand; none at the run's end.
  struct Frames {
    const PythonFrame* first;
    uint32_t count;
  };
  Frames NextFrames() {
    if (next_ == run_end_ && !TurnToNextRun()) return {nullptr, 0};
    const Frames frames = {frames_ + next_, run_end_ - next_};
    next_ = run_end_;
    return frames;
  }

  // Represents the code objects of all frames returned so far, and of some further out: their
  // identity, not only their addresses, which are reused. Equal frames, returned from the innermost
  // on, have equal fingerprints.
  uint64_t fingerprint() const { return fingerprint_; }

  // Returns the function that loads frames of interpreters with this layout.
  static Interpreter::LoadFrames LoaderFor(const Layout& layout);

 private:
  static constexpr uint32_t kBatch = 64;  // frames

  friend class FrameLoader;

  void BeginAt(uint64_t thread) {
    const Layout& layout = python_.layout();
    memcpy(&frame_, reinterpret_cast<const void*>(thread + layout.thread_frame), sizeof(frame_));
    if (layout.chain == FrameChain::kCFrames) {
      cframe_ = frame_;
      memcpy(&frame_, reinterpret_cast<const void*>(cframe_ + layout.cframe_frame), sizeof(frame_));
    }
    if (frame_ != 0) python_.load()(this);
  }

  // Returns whether the run continues.
  bool TurnToNextRun() {
    if (next_ < count_) {
      run_end_ = python_.layout().chain == FrameChain::kObjects ? next_ + 1 : ends_[++run_];
      return false;
    }
    if (frame_ == 0) return false;
    const bool goes_on = in_run_;
    python_.load()(this);
    return goes_on && count_ != 0;
  }

  const Interpreter& python_;
  uint64_t frame_ = 0;   // the frame after those that are loaded
  uint64_t cframe_ = 0;  // of the next run
  uint64_t fingerprint_ = 0;
  uint32_t next_ = 0, count_ = 0;
  uint32_t run_ = 0, run_end_ = 0;  // the run of the next frame, among the loaded ones
  bool in_run_ = false;             // frame_ belongs to the last loaded run
  bool unreadable_ = false;
  PythonFrame frames_[kBatch];
  // For each loaded run: its marker (0: unknown), and the index after its last frame (for the last
  // run: so far).
  uint64_t markers_[kBatch];
  uint8_t ends_[kBatch];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_PYTHON_WALK_H_
