// preload/stack_capture.h
//
// StackCapture: the addresses of the calling thread's frames, innermost first, by an unwinder that
// is found in the process: libgcc's, or, where it is asked for, libunwind, opened for ourselves
// alone (its own symbols would otherwise take over the target's exception handling). libunwind is
// several times faster and not the default, because it keeps a pipe: two descriptors of the target
// get other numbers, and a program that closes all of its own and opens files instead would have
// bytes of them read and written by libunwind's checks of memory.
//
// Thread safety: Find() once; Capture() from any thread. Cost: docs/overhead.md. Both unwinders may
// allocate and take the loader's lock on the first walk of a thread or library.

#ifndef GMT_PRELOAD_STACK_CAPTURE_H_
#define GMT_PRELOAD_STACK_CAPTURE_H_

#include <stdint.h>

#include "session/layout.h"
#include "session/options.h"

namespace gmt::preload {

class StackCapture {
 public:
  // The unwinder asked for; without it the next best. *name says which: "libunwind", "libgcc" or
  // "none".
  static StackCapture Find(session::Unwinder wanted, const char** name);

  explicit operator bool() const { return walk_ != nullptr; }

  // Writes up to `capacity` frames that lie outside this library; returns how many. *truncated:
  // there were more.
  uint32_t Capture(uint64_t* frames, uint32_t capacity, bool* truncated) const;

 private:
  using Walk = uint32_t (*)(const StackCapture& self, uint64_t* frames, uint32_t capacity);
  static uint32_t WalkLibunwind(const StackCapture& self, uint64_t* frames, uint32_t capacity);
  static uint32_t WalkLibgcc(const StackCapture& self, uint64_t* frames, uint32_t capacity);

  bool FindLibunwind();
  bool FindLibgcc();

  Walk walk_ = nullptr;
  void* backtrace_ = nullptr;  // unw_backtrace, or _Unwind_Backtrace
  void* get_ip_ = nullptr;     // _Unwind_GetIP
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACK_CAPTURE_H_
