// preload/record/record_stack.h
//
// The stack of an event: captured, and found or put into the session's table.
//
// Thread safety: any thread and signal handler. No lock, no allocation; the kernel and the loader are
// asked only for a stack that is new.

#ifndef GMT_PRELOAD_RECORD_RECORD_STACK_H_
#define GMT_PRELOAD_RECORD_RECORD_STACK_H_

#include <stdint.h>

#include "preload/process/process.h"

namespace gmt::preload {

// The id of the calling thread's stack, without this library's own frames; 0 where none is wanted,
// or the table is full.
uint32_t RecordStack(Process* p);
// The same with Python's frames alone where the thread has any: what tells a line of a model, for a
// third of the time. Native frames are not walked even to see whether a signal has interrupted the
// interpreter: not for code that a signal handler may run. REQUIRES: stacks of some kind are wanted.
uint32_t RecordForwardStack(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_RECORD_STACK_H_
