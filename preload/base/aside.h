// preload/base/aside.h
//
// Doing something big in the middle of somebody else's call, unnoticed. A session is started on
// whatever thread makes the first GPU call, and that thread may have a stack of 16 KiB, a profiler's
// timer that interrupts its system calls, a cancellation request pending, a file size limit or a
// reader of its stderr that has gone: none of that may end the start half way, nor the start end
// the thread.
//
// Thread safety: from any thread.

#ifndef GMT_PRELOAD_BASE_ASIDE_H_
#define GMT_PRELOAD_BASE_ASIDE_H_

#include <signal.h>
#include <stddef.h>

namespace gmt::preload {

// While it lives, no signal is delivered to this thread, and it is not cancelled. Signals that our
// own writes raise (SIGPIPE, SIGXFSZ) are taken back at its end; all others arrive then.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_, pending_;
  int cancel_state_;
};

inline constexpr size_t kAsideStack = 256 << 10;  // the loader and names of files want tens of KiB

// Runs work(argument) on a stack of its own, under HeldSignals. False, without having run it, where
// there is no memory for the stack.
bool RunAside(void (*work)(void*), void* argument, size_t stack = kAsideStack);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_ASIDE_H_
