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
  // Python's frames are taken from `python` where that is on.
  StackBuilder(session::StackTable::Buffer* stack, const Interpreter& python)
      : stack_(*stack), interpreter_(python), python_(python) {}

  // The next native frame outwards. False when there is no room for more.
  bool Add(const NativeFrame& frame) {
    if (depth_ == 0 && InOwnImage(frame.address)) return true;
    if (frame.exact) [[unlikely]]
      AddInterrupted(frame);
    if (!Put(frame.exact ? frame.address | session::kExactFrame : frame.address)) return false;
    return with_python_ && python_.IsInterpretedBy(frame) ? AddRun() : true;
  }

  // When all native frames have come, or none are wanted. Behind a native walk that broke off come
  // Python frames from further out: in order, all the same.
  void Finish(bool native_is_truncated) {
    const bool python_is_left = with_python_ && !python_.done();
    if (native_is_truncated) {
      flags_ |= session::kStackTruncated;
    } else if (python_is_left && depth_ != 0 && (flags_ & session::kStackTruncated) == 0) {
      flags_ |= session::kStackUnmerged;
    }
    while (with_python_ && !python_.done() && AddRun()) {
    }
    if (python_.unreadable()) flags_ |= session::kStackNoPython;
    stack_.fingerprint = (flags_ & session::kStackPython) != 0 ? python_.fingerprint() : 0;
  }

  uint32_t depth() const { return depth_; }
  uint16_t flags() const { return flags_; }
  // Whether the code that asks was called, however indirectly, out of a signal's midst.
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

  // In the middle of its own code the interpreter may be half done with a frame.
  void AddInterrupted(const NativeFrame& frame) {
    was_interrupted_ = true;
    if (python_.done() || !interpreter_.OwnsAddress(frame.address)) return;
    with_python_ = false;
    flags_ |= session::kStackNoPython;
  }

  session::StackTable::Buffer& stack_;
  const Interpreter& interpreter_;
  PythonWalk python_;
  uint32_t depth_ = 0;
  uint16_t flags_ = 0;
  bool with_python_ = true, was_interrupted_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACK_BUILDER_H_
