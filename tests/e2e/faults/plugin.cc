// A module with a CUDA runtime of its own, which goes with it.
#include "use_gpu.h"

extern "C" void UseGpuFromPlugin() { UseGpu(2); }
