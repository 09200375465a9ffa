// <cuda_runtime_api.h> with its functions marked as exports, and the functions that nvcc's
// generated code calls. Those have no public header; their signatures follow from that code.
#ifndef TESTS_SIMCUDA_CUDART_API_H_
#define TESTS_SIMCUDA_CUDART_API_H_

#ifdef SIMCUDA_STATIC  // linked into a program, which exports none of it
#pragma GCC visibility push(hidden)
#else
#pragma GCC visibility push(default)
#endif
#include <cuda_runtime_api.h>

extern "C" {
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t* resource, unsigned int buffer,
                                         unsigned int flags);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

// Called by programs that are compiled for a per-thread default stream.
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t size, cudaMemPool_t pool,
                                         cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream);
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                  unsigned int version, unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status);

void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
char __cudaInitModule(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* name, int thread_limit, uint3* tid, uint3* bid, dim3* block,
                            dim3* grid, int* warp_size);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* name,
                       int external, size_t size, int constant, int global);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
                                         CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_memory,
                                       void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_memory, cudaStream_t stream);
}
#pragma GCC visibility pop

#endif  // TESTS_SIMCUDA_CUDART_API_H_
