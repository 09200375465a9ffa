// <cuda.h> with its functions marked as exports of the library that defines them; everything else
// in the simulated libraries has hidden visibility. Files that define them must include this, never
// <cuda.h>.
//
// Followed by exported forms that cuda.h declares only for other callers: older ones, and those for
// a per-thread default stream.
#ifndef TESTS_SIMCUDA_CUDA_API_H_
#define TESTS_SIMCUDA_CUDA_API_H_

#pragma GCC visibility push(default)
#define __CUDA_API_VERSION_INTERNAL  // every form of every function, under its exported name
#include <cuda.h>

extern "C" {
CUresult cuProfilerStart();
CUresult cuProfilerStop();
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int flags);
}
#pragma GCC visibility pop

#endif  // TESTS_SIMCUDA_CUDA_API_H_
