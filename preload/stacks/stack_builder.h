// preload/stacks/stack_builder.h
//
// StackBuilder: one stack out of two walks. Native frames come in turn, innermost first; where one
// of them runs Python, the Python frames that it runs go right behind it.
//
//   native                          Python             stack
//   at::empty_cuda                                     at::empty_cuda
//   THPVariable_empty                                  THPVariable_empty
//   _PyEval_EvalFrameDefault   <--  forward, step      _PyEval_EvalFrameDefault
//   PyObject_Call                                      forward
//   _PyEval_EvalFrameDefault   <--  main               step
//   Py_RunMain                                         PyObject_Call
//                                                      _PyEval_EvalFrameDefault
//                                                      main
//                                                      Py_RunMain
//
// The innermost kMaxStackDepth frames are kept. This library's own frames, with which every walk
// begins, are left out. What is not certain is said in the stack's flags (session/layout.h,
// StackFlags), never guessed: Python frames that no native frame seems to run stand behind all
// native ones.
//
// Thread safety: one stack on one thread. Cost: docs/overhead.md.

#ifndef GMT_PRELOAD_STACKS_STACK_BUILDER_H_
#define GMT_PRELOAD_STACKS_STACK_BUILDER_H_

#include <stdint.h>

#include "preload/loader/own_image.h"
#include "preload/stacks/greenlets.h"
#include "preload/stacks/python/python_walk.h"
#include "preload/stacks/unwind/native_frame.h"
#include "session/stack_table.h"

namespace gmt::preload {

class StackBuilder {
 public:
  enum class Native { kWanted, kLeftOut };

  // Python's frames are taken from `python` where that is on.
  StackBuilder(session::StackTable::Buffer* stack, const Interpreter& python, Native native)
      : stack_(*stack),
        interpreter_(python),
        python_(python),
        native_is_wanted_(native == Native::kWanted) {}

  // All frames of a walk, and its end. Most frames are an address to note; what the loops need for
  // them is in registers.
  template <typename Walk>
  [[gnu::always_inline]] void AddAll(Walk* walk) {
    const Interpreter::OwnText text = interpreter_.text();
    const Greenlets::Text greenlets = Greenlets::text();
    uint64_t* const frames = stack_.frames;
    uint64_t low = 0;
    uint32_t depth = 0;
    NativeFrame frame;
    // Until the interpreter's code is met; where it leaves no markers, to the end.
    bool watches_text = true;
    while (watches_text) {
      if (!walk->Next(&frame)) return FinishAt(depth, walk->truncated());
      const bool is_first_or_full = depth - 1 >= session::kMaxStackDepth - 1;
      if (frame.exact || text.Holds(frame.address) || greenlets.Holds(frame.address) ||
          is_first_or_full) [[unlikely]] {
        if (!AddSpecialAt(&depth, frame, low)) return Finish(false);
        watches_text = !(has_begun_ && python_.has_markers());
      } else {
        frames[depth++] = frame.address;
      }
      low = frame.cfa;
    }
    for (uint64_t marker = NextMarker(); walk->Next(&frame); low = frame.cfa) {
      if (marker < frame.cfa || frame.exact || greenlets.Holds(frame.address) ||
          depth == session::kMaxStackDepth) [[unlikely]] {
        if (!AddSpecialAt(&depth, frame, low)) return Finish(false);
        marker = NextMarker();
      } else {
        frames[depth++] = frame.address;
      }
    }
    FinishAt(depth, walk->truncated());
  }

  // The next native frame outwards, of a walk that gives them one by one. False when no more are
  // wanted.
  bool Add(const NativeFrame& frame) {
    const uint64_t low = low_;
    low_ = frame.cfa;
    return AddSpecial(frame, low);
  }
  // When no more come. Behind a native walk that broke off come Python frames from further out: in
  // order, all the same.
  void Finish(bool native_is_truncated) {
    if (!was_interrupted_) BeginPython();
    if (native_is_wanted_ && native_is_truncated) {
      flags_ |= session::kStackTruncated;
    } else if (depth_ != 0 && !python_.done() && (flags_ & session::kStackTruncated) == 0) {
      flags_ |= session::kStackUnmerged;
    }
    while (!is_in_doubt_ && !python_.done() && AddRun()) {
    }
    if (python_.unreadable()) flags_ |= session::kStackNoPython;
    stack_.fingerprint = (flags_ & session::kStackPython) != 0 ? python_.fingerprint() : 0;
  }

  uint32_t depth() const { return depth_; }
  uint16_t flags() const { return flags_; }
  // Whether this is code that a signal has called.
  bool was_interrupted() const { return was_interrupted_; }

 private:
  // By value: where the loops' frame has no address it stays in registers.
  [[gnu::always_inline]] bool AddSpecialAt(uint32_t* depth, NativeFrame frame, uint64_t low) {
    depth_ = *depth;
    const bool goes_on = AddSpecial(frame, low);
    *depth = depth_;
    return goes_on;
  }
  void FinishAt(uint32_t depth, bool native_is_truncated) {
    depth_ = depth;
    Finish(native_is_truncated);
  }
  uint64_t NextMarker() const { return is_in_doubt_ ? PythonWalk::kNoMarker : python_.marker(); }

  // A frame that may not be just an address. False when no more are wanted.
  [[gnu::noinline]] bool AddSpecial(const NativeFrame& frame, uint64_t low) {
    if (depth_ == 0 && InOwnImage(frame.address)) return true;
    was_interrupted_ |= frame.exact;
    if (interpreter_.OwnsAddress(frame.address)) MeetInterpreter(frame);
    if (!native_is_wanted_) return !has_begun_;
    if (depth_ == session::kMaxStackDepth) return Cut();
    stack_.frames[depth_++] = frame.exact ? frame.address | session::kExactFrame : frame.address;
    if (Greenlets::text().Holds(frame.address) && BeginsGreenlet()) return Cut();
    return is_in_doubt_ || !python_.IsInterpretedBy(frame, low) || AddRun();
  }

  // What comes further out is not taken.
  bool Cut() {
    flags_ |= session::kStackTruncated;
    return false;
  }

  // False where there is no room for all of it.
  bool AddRun() {
    flags_ |= session::kStackPython;
    uint32_t depth = depth_;
    for (PythonWalk::Frames run; (run = python_.NextFrames()).count != 0;) {
      const uint32_t room = session::kMaxStackDepth - depth;
      const uint32_t count = run.count < room ? run.count : room;
      for (uint32_t i = 0; i < count; ++i, ++depth)
        stack_.frames[depth] = session::InterpreterFrame(run.first[i].code, run.first[i].offset);
      depth_ = depth;
      if (count < run.count) return Cut();
    }
    return true;
  }

  void BeginPython() {
    if (!has_begun_) python_.Begin();
    has_begun_ = true;
  }

  // Greenlet's code runs in greenlets, and beneath Python frames that switch to another one. Those
  // of a greenlet end where it begins.
  bool BeginsGreenlet() const { return (has_begun_ || !interpreter_.on()) && python_.done(); }

  // No Python frame belongs further in than the interpreter's own code. In the midst of that code,
  // where a signal may come, it can be half done with a frame: then nothing of it is read.
  void MeetInterpreter(const NativeFrame& frame) {
    if (frame.exact) {
      flags_ |= session::kStackNoPython;
      is_in_doubt_ = has_begun_ = true;
    }
    BeginPython();
  }

  session::StackTable::Buffer& stack_;
  const Interpreter& interpreter_;
  PythonWalk python_;
  uint64_t low_ = 0;  // where the next frame begins
  uint32_t depth_ = 0;
  uint16_t flags_ = 0;
  const bool native_is_wanted_;
  bool has_begun_ = false, was_interrupted_ = false, is_in_doubt_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_STACK_BUILDER_H_
