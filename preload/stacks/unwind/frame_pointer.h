// preload/stacks/unwind/frame_pointer.h
//
// The way out of code that has no call frame information (compilers of the moment, old assembly):
// the frame pointer, where it can be believed.

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

// The caller of a frame whose frame pointer is `bp` and whose part of the stack begins at `sp`.
// False unless everything fits: bp is aligned and above sp, the words there can be read, and the
// return address stands behind a call in a module whose code has call frame information.
bool FindCallerByFramePointer(uint64_t sp, uint64_t bp, StackRange* range, Caller* caller);

// Whether this is an address that code may return to: behind a call instruction. *described: in a
// module that has call frame information.
bool IsBehindCall(uint64_t return_address, bool* described);

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_FRAME_POINTER_H_
