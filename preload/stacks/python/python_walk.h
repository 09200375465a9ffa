// preload/stacks/python/python_walk.h
//
// PythonWalk: this thread's Python frames, innermost first, read from the interpreter's own frame
// structures without the GIL. Only a thread itself pushes and pops its frames, each frame owns its
// code object, and names and line tables never change: so what is read stays as it is while one
// reads. Nothing is allocated, no reference count is touched, no Python code runs.
//
// The interpreter's eval function runs Python frames, one or several; those form a *run*. It keeps
// a record on its own stack (the run's marker), which tells between which native frames the run
// belongs:
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
// What is left when the native frames have ended (python.done() is false) could not be placed.
// Frames that the public functions hide are left out here too: those of the interpreter itself, and
// those that have not begun.
//
// Thread safety: one walk on one thread; in signal handlers, but see Interpreter::OwnsAddress.
// Cost: docs/overhead.md. Frames are loaded many at a time, by code that is compiled for the layout
// of each version: one load waits for the one before, the rest runs beside it.

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
  // Reads nothing yet: done().
  explicit PythonWalk(const Interpreter& python) : python_(python) {}
  PythonWalk(const PythonWalk&) = delete;
  PythonWalk& operator=(const PythonWalk&) = delete;

  // Turns to this thread's innermost frame. Not where a signal has interrupted the interpreter's own
  // text.
  void Begin() {
    const Interpreter::Thread thread = python_.CurrentThread();
    unreadable_ = thread.unreadable;
    if (thread.state != 0) BeginAt(thread.state);
  }

  // No frames are left.
  bool done() const { return next_ == count_ && frame_ == 0; }

  // The thread is known to the interpreter, and its frames cannot be read (now, or at all).
  bool unreadable() const { return unreadable_; }

  // Where on the stack the next run belongs: behind the native frame that this address lies in.
  // kNoMarker where none is left, or is known.
  static constexpr uint64_t kNoMarker = ~uint64_t{0};
  uint64_t marker() const {
    return next_ == count_ || !has_markers() || markers_[run_] == 0 ? kNoMarker : markers_[run_];
  }
  // Otherwise each native frame of the eval function runs one Python frame.
  bool has_markers() const { return python_.layout().chain != FrameChain::kObjects; }

  // Whether the next run belongs behind this native frame, which lies on the stack from `low` on.
  // (On another stack, a signal's or a coroutine's, the addresses jump, and nothing lies in
  // between.)
  bool IsInterpretedBy(const NativeFrame& native, uint64_t low) const {
    if (next_ == count_) return false;
    if (!has_markers()) return python_.IsEval(native.exact ? native.address : native.address - 1);
    const uint64_t where = marker();
    return where >= low && where < native.cfa;
  }

  // The next frame of the run; false at its end, and the next run is the current one.
  bool Next(PythonFrame* frame) {
    if (next_ == run_end_ && !TurnToNextRun()) return false;
    // Member by member, as they were written: a load over two stores would wait for both.
    frame->code = frames_[next_].code;
    frame->offset = frames_[next_++].offset;
    return true;
  }
  // The same, as many frames as are at hand; none at the run's end.
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

  // Stands for the code objects of all frames given so far, and of some further out: for their
  // identity and not only for their addresses, which are used again when code objects come and go.
  // The same frames, given from the innermost on, have the same fingerprint.
  uint64_t fingerprint() const { return fingerprint_; }

  // What loads the frames of interpreters with this layout.
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

  // Whether the run goes on.
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
  uint64_t frame_ = 0;   // the frame behind those that are loaded
  uint64_t cframe_ = 0;  // of the next run
  uint64_t fingerprint_ = 0;
  uint32_t next_ = 0, count_ = 0;
  uint32_t run_ = 0, run_end_ = 0;  // the run of the next frame, among those that are loaded
  bool in_run_ = false;             // frame_ belongs to the last of them
  bool unreadable_ = false;
  PythonFrame frames_[kBatch];
  // Of the runs that are loaded: where they belong (0: not known), and the index behind their last
  // frame (of the last run: so far).
  uint64_t markers_[kBatch];
  uint8_t ends_[kBatch];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_PYTHON_WALK_H_
