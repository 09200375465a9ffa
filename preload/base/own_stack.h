// preload/base/own_stack.h
//
// Runs lengthy work inside a call of the program without side effects on the calling thread. A
// session is started on whatever thread makes the first GPU call. That thread may have a stack of
// 16 KiB, a profiling timer that interrupts its system calls, a pending cancellation request, a
// file size limit, or a stderr pipe without a reader. None of these may abort the start, and the
// start may not terminate the thread.
//
// Thread safety: any thread.

#ifndef GMT_PRELOAD_BASE_OWN_STACK_H_
#define GMT_PRELOAD_BASE_OWN_STACK_H_

#include <signal.h>
#include <stddef.h>

namespace gmt::preload {

// Blocks delivery of signals to this thread, and its cancellation, during the object's lifetime.
// Signals that our own writes raise (SIGPIPE, SIGXFSZ) are discarded at its end; all others are
// delivered then.
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

inline constexpr size_t kOwnStackBytes = 256 << 10;  // the loader and file names need tens of KiB

// Runs work(argument) on its own stack, under HeldSignals. Returns false without running it if
// there is no memory for the stack.
bool RunOnOwnStack(void (*work)(void*), void* argument, size_t stack = kOwnStackBytes);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_OWN_STACK_H_
