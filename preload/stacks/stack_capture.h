// preload/stacks/stack_capture.h
//
// StackCapture: the calling thread's native frames, innermost first, by one of three walks.
//
//   own        preload/stacks/unwind/: the default if it supports the machine. No lock, no allocation
//   libgcc     the C++ runtime's unwinder, about thirty times slower
//   libunwind  opened in a private scope (its symbols would otherwise take over the target's
//              exception handling). It reports neither the stack position of a frame nor where a
//              signal interrupted it, so Python frames cannot be merged. It keeps a pipe open,
//              which shifts two of the target's descriptor numbers
//
// The latter two exist for comparison. They may allocate memory and take the loader's lock on the
// first walk of a thread or library.
//
// Thread safety: Find() once; Capture() from any thread. Cost: docs/overhead.md.

#ifndef GMT_PRELOAD_STACKS_STACK_CAPTURE_H_
#define GMT_PRELOAD_STACKS_STACK_CAPTURE_H_

#include "preload/stacks/stack_builder.h"
#include "session/options.h"

namespace gmt::preload {

class StackCapture {
 public:
  // Returns the requested walk; if it is unavailable, the next best. *name is "own", "libgcc",
  // "libunwind" or "none". If only Python frames are wanted, native ones are still walked to find
  // where those begin. Takes the loader's lock.
  static StackCapture Find(const session::Options& options, const char** name);

  // Passes the frames to the builder, and finishes it.
  void Capture(StackBuilder* stack) const { walk_(*this, stack); }

  // Whether the walk is "own".
  bool is_own() const { return walk_ == WalkOwn; }

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
