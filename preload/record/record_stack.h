// preload/record/record_stack.h
//
// Captures the stack of an event and interns it in the session's table.
//
// Thread safety: any thread and signal handler. Takes no lock and allocates nothing. Only a new
// stack needs the kernel and the loader.

#ifndef GMT_PRELOAD_RECORD_RECORD_STACK_H_
#define GMT_PRELOAD_RECORD_RECORD_STACK_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// Returns the id of the calling thread's stack, without this library's own frames; 0 if stacks are
// disabled or the table is full.
uint32_t RecordStack(Process* p);
// Same, but with Python frames alone if the thread has any: enough to identify a line of a model,
// for a third of the time. Native frames are not walked, not even to check whether a signal has
// interrupted the interpreter, so this must not be called for code that a signal handler may run.
// REQUIRES: stacks of some kind are enabled.
uint32_t RecordForwardStack(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_STACK_H_
