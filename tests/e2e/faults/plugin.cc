// A module with its own CUDA runtime, which is unloaded with it.
#include "use_gpu.h"

extern "C" void UseGpuFromPlugin() { UseGpu(2); }
