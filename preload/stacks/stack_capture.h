// preload/stacks/stack_capture.h
//
// StackCapture: the calling thread's native frames, innermost first, by one of three walks.
//
//   own        preload/stacks/unwind/: the default where the machine has it. No lock, no allocation
//   libgcc     the C++ runtime's unwinder, about thirty times slower
//   libunwind  opened for ourselves alone (its own symbols would otherwise take over the target's
//              exception handling); it tells neither where a frame lies on the stack nor where a
//              signal has interrupted it, so that Python's frames do not go with it. It keeps a
//              pipe: two descriptors of the target get other numbers
//
// The latter two are there to compare with, and may allocate and take the loader's lock on the first
// walk of a thread or library.
//
// Thread safety: Find() once; Capture() from any thread. Cost: docs/overhead.md.

#ifndef GMT_PRELOAD_STACKS_STACK_CAPTURE_H_
#define GMT_PRELOAD_STACKS_STACK_CAPTURE_H_

#include "preload/stacks/stack_builder.h"
#include "session/options.h"

namespace gmt::preload {

class StackCapture {
 public:
  // The walk asked for; without it the next best. *name says which: "own", "libgcc", "libunwind" or
  // "none". Where Python's frames alone are wanted, native ones still tell where those begin. Takes
  // the loader's lock.
  static StackCapture Find(const session::Options& options, const char** name);

  // Gives the builder the frames, and finishes it.
  void Capture(StackBuilder* stack) const { walk_(*this, stack); }

 private:
  using Walk = void (*)(const StackCapture& self, StackBuilder* stack);
  static void WalkNothing(const StackCapture& self, StackBuilder* stack);
  static void WalkOwn(const StackCapture& self, StackBuilder* stack);
  static void WalkLibgcc(const StackCapture& self, StackBuilder* stack);
  static void WalkLibunwind(const StackCapture& self, StackBuilder* stack);

  bool FindOwn();
  bool FindLibgcc();
  bool FindLibunwind();

  Walk walk_ = nullptr;
  void* backtrace_ = nullptr;  // unw_backtrace, or _Unwind_Backtrace
  void* get_ip_ = nullptr;     // _Unwind_GetIPInfo
  void* get_cfa_ = nullptr;    // _Unwind_GetCFA
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_STACK_CAPTURE_H_
