// preload/stacks/unwind/frame_pointer.h
//
// Finds the caller of code without call frame information (code generated at run time, old
// assembly) by the frame pointer, if that is credible.

#ifndef GMT_PRELOAD_STACKS_UNWIND_FRAME_POINTER_H_
#define GMT_PRELOAD_STACKS_UNWIND_FRAME_POINTER_H_

#include <stdint.h>

#include "preload/stacks/unwind/registers.h"
#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

struct Caller {
  uint64_t cfa, pc, bp;
};

// Finds the caller of a frame whose frame pointer is `bp` and whose part of the stack begins at
// `sp`. Returns false unless everything is consistent: bp is aligned and above sp, the words there
// can be read, and the return address follows a call in a module whose code has call frame
// information.
bool FindCallerByFramePointer(uint64_t sp, uint64_t bp, StackRange* range, Caller* caller);

// Returns whether code may return to this address: it follows a call instruction. *described: it is
// in a module that has call frame information.
bool IsBehindCall(uint64_t return_address, bool* described);

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_FRAME_POINTER_H_
