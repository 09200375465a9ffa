// preload/stacks/unwind/registers.h
//
// Registers: the start of a walk. Contains the registers that a function must preserve for its
// caller, and the two by which every frame is found.

#ifndef GMT_PRELOAD_STACKS_UNWIND_REGISTERS_H_
#define GMT_PRELOAD_STACKS_UNWIND_REGISTERS_H_

#include <stdint.h>

#if defined(__x86_64__)
#define GMT_HAS_NATIVE_WALK 1
#else
#define GMT_HAS_NATIVE_WALK 0  // libgcc's unwinder is used there
#endif

#if GMT_HAS_NATIVE_WALK
#include "preload/stacks/unwind/registers_x86_64.h"
#endif

#endif  // GMT_PRELOAD_STACKS_UNWIND_REGISTERS_H_
