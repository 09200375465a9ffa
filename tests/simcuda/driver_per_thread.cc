// The forms of functions for callers whose default stream is per thread. What a null stream means
// makes no difference to a device whose kernels do nothing, so each is a jump to the plain form,
// unless its file defines it: those of memory calls are in the log under their own name.
#include "tests/simcuda/cuda_api.h"

#if defined(__x86_64__)
#define SIM_JUMP "jmp "
#elif defined(__aarch64__)
#define SIM_JUMP "b "
#endif

#define SIM_ENTRY(name, since, symbol)
#define SIM_STREAM_ENTRY(name, since, symbol, per_thread)                     \
  asm(".weak " #per_thread "\n.type " #per_thread ", @function\n" #per_thread \
      ":\n  " SIM_JUMP #symbol "@PLT\n");
#include "tests/simcuda/driver_functions.inc"
#undef SIM_ENTRY
#undef SIM_STREAM_ENTRY
