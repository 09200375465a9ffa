// <cuda.h> with its functions marked as exports of the library that defines them; everything else
// in the simulated libraries has hidden visibility. Include this, never <cuda.h>, where they are
// defined.
//
// Below it, exported forms that cuda.h declares only for other callers: older ones, and those for a
// default stream per thread.
#ifndef TESTS_SIMCUDA_CUDA_API_H_
#define TESTS_SIMCUDA_CUDA_API_H_

#pragma GCC visibility push(default)
#include <cuda.h>

extern "C" {
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int affinities,
                        unsigned int flags, CUdevice device);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t size, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t size, CUmemoryPool pool,
                                      CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult cuProfilerStart();
CUresult cuProfilerStop();
}
#pragma GCC visibility pop

#endif  // TESTS_SIMCUDA_CUDA_API_H_
