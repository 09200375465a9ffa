// How the stand-ins for cuBLAS, cuDNN and NCCL do their work: they launch one empty kernel through
// the driver on the caller's stream, so that captures are not empty and events have something to
// wait for.
#ifndef TESTS_SIMCUDA_MATH_LAUNCH_H_
#define TESTS_SIMCUDA_MATH_LAUNCH_H_

#include <cuda.h>

namespace sim {

CUresult LaunchMathKernel(CUstream stream);

}  // namespace sim

#endif  // TESTS_SIMCUDA_MATH_LAUNCH_H_
