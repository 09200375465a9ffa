// preload/stacks/stack_builder.h
//
// StackBuilder: merges two walks into one stack. Native frames arrive one after the other,
// innermost first. Where one of them runs Python code, the Python frames that it runs follow
// directly after it.
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
// begins, are left out. Uncertainty is recorded in the stack's flags (session/layout.h,
// StackFlags), never guessed: Python frames that no native frame seems to run are placed after all
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

  // Takes Python frames from `python` if that is enabled.
  StackBuilder(session::StackTable::Buffer* stack, const Interpreter& python, Native native)
      : stack_(*stack),
        interpreter_(python),
        python_(python),
        native_is_wanted_(native == Native::kWanted) {}

  // Adds all frames of a walk, and finishes the stack. Most frames are just an address to store.
  template <typename Walk>
  [[gnu::always_inline]] void AddAll(Walk* walk) {
    const Interpreter::OwnText text = interpreter_.text();
    const Greenlets::Text greenlets = Greenlets::text();
    uint64_t* const frames = stack_.frames;
    uint64_t low = 0;
    uint32_t depth = 0;
    bool is_full = false;
    // Until the interpreter's code is reached; to the end if that code leaves no markers on the
    // stack.
    const bool reaches_end = walk->ForEach([&](NativeFrame frame) __attribute__((always_inline)) {
      const bool is_first_or_full = depth - 1 >= session::kMaxStackDepth - 1;
      bool watches_text = true;
      if (frame.exact || text.Holds(frame.address) || greenlets.Holds(frame.address) ||
          is_first_or_full) [[unlikely]] {
        is_full = !AddSpecialAt(&depth, frame, low);
        watches_text = !is_full && !(has_begun_ && python_.has_markers());
      } else {
        frames[depth++] = frame.address;
      }
      low = frame.cfa;
      return watches_text;
    });
    if (is_full) return Finish(false);
    if (reaches_end) return FinishAt(depth, walk->truncated());
    uint64_t marker = NextMarker();
    walk->ForEach([&](NativeFrame frame) __attribute__((always_inline)) {
      if (marker < frame.cfa || frame.exact || greenlets.Holds(frame.address) ||
          depth == session::kMaxStackDepth) [[unlikely]] {
        is_full = !AddSpecialAt(&depth, frame, low);
        marker = NextMarker();
      } else {
        frames[depth++] = frame.address;
      }
      low = frame.cfa;
      return !is_full;
    });
    if (is_full) return Finish(false);
    FinishAt(depth, walk->truncated());
  }

  // Adds the next outer native frame, for walks that provide frames one by one. Returns false if no
  // more are wanted.
  bool Add(const NativeFrame& frame) {
    const uint64_t low = low_;
    low_ = frame.cfa;
    return AddSpecial(frame, low);
  }
  // Called after the last frame. If the native walk was cut short, the Python frames further out
  // follow it; their order is still right.
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
  // Whether this is code called by a signal.
  bool was_interrupted() const { return was_interrupted_; }

 private:
  // Takes the frame by value: the loops' frame then has no address and stays in registers.
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

  // Adds a frame that may need more than its address. Returns false if no more are wanted.
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

  // Leaves out the frames further out.
  bool Cut() {
    flags_ |= session::kStackTruncated;
    return false;
  }

  // Returns false if there was no room for all of it.
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

  // Greenlet's code is found at the start of greenlets, and also beneath Python frames that switch
  // to another greenlet. Python frames of a greenlet end where the greenlet begins.
  bool BeginsGreenlet() const { return (has_begun_ || !interpreter_.on()) && python_.done(); }

  // No Python frame belongs further in than the interpreter's own code. If a signal interrupts that
  // code, it may be half done with a frame; no Python frame is read then.
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
