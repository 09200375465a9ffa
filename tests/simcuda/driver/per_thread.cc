// The forms of functions for callers with a per-thread default stream. What a null stream refers to
// does not matter to a device whose kernels do nothing, so each is a jump to the plain form unless
// its file defines it: memory calls are logged under their own name.
#include "tests/simcuda/cuda_api.h"
#include "tests/simcuda/jump.h"

#define SIM_ENTRY(name, since, symbol)
#define SIM_STREAM_ENTRY(name, since, symbol, per_thread) SIM_JUMP(per_thread, symbol)
#include "tests/simcuda/driver/functions.inc"
#undef SIM_ENTRY
#undef SIM_STREAM_ENTRY
