// <cuda_runtime_api.h> with its functions marked as exports, and the functions that nvcc's
// generated code calls: those have no public header, their signatures follow from that code.
#ifndef TESTS_SIMCUDA_CUDART_API_H_
#define TESTS_SIMCUDA_CUDART_API_H_

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>

extern "C" {
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

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
