// preload/stack_builder.h
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

#ifndef GMT_PRELOAD_STACK_BUILDER_H_
#define GMT_PRELOAD_STACK_BUILDER_H_

#include <stdint.h>

#include "preload/own_image.h"
#include "preload/python/python_walk.h"
#include "preload/unwind/native_frame.h"
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

  // The next native frame outwards. False when no more are wanted.
  bool Add(const NativeFrame& frame) {
    if (depth_ == 0 && InOwnImage(frame.address)) return true;
    was_interrupted_ |= frame.exact;
    if (interpreter_.OwnsAddress(frame.address) && !MeetInterpreter(frame)) return false;
    if (!native_is_wanted_) return true;
    if (!Put(frame.exact ? frame.address | session::kExactFrame : frame.address)) return false;
    return !is_in_doubt_ && python_.IsInterpretedBy(frame) ? AddRun() : true;
  }

  // When no more native frames come. Behind a native walk that broke off come Python frames from
  // further out: in order, all the same.
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
  bool Put(uint64_t frame) {
    if (depth_ == session::kMaxStackDepth) [[unlikely]] {
      flags_ |= session::kStackTruncated;
      return false;
    }
    stack_.frames[depth_++] = frame;
    return true;
  }

  bool AddRun() {
    flags_ |= session::kStackPython;
    for (PythonFrame frame; python_.Next(&frame);) {
      if (!Put(session::InterpreterFrame(frame.code, frame.offset))) return false;
    }
    return true;
  }

  void BeginPython() {
    if (!has_begun_) python_.Begin();
    has_begun_ = true;
  }

  // No Python frame belongs further in than the interpreter's own code. In the midst of that code,
  // where a signal may come, it can be half done with a frame: then nothing of it is read. False
  // where the native frames further out do not matter.
  bool MeetInterpreter(const NativeFrame& frame) {
    if (frame.exact) {
      flags_ |= session::kStackNoPython;
      is_in_doubt_ = has_begun_ = true;
      return native_is_wanted_;
    }
    BeginPython();
    return native_is_wanted_;
  }

  session::StackTable::Buffer& stack_;
  const Interpreter& interpreter_;
  PythonWalk python_;
  uint32_t depth_ = 0;
  uint16_t flags_ = 0;
  const bool native_is_wanted_;
  bool has_begun_ = false, was_interrupted_ = false, is_in_doubt_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACK_BUILDER_H_
