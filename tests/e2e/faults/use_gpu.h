// What every program here does with the GPU: something that can be counted in a recording.
#ifndef TESTS_E2E_FAULTS_USE_GPU_H_
#define TESTS_E2E_FAULTS_USE_GPU_H_

#include <cuda_runtime_api.h>

#include <cstdlib>

// `count` allocations, all but the last of them freed. Ends the process (99) where one fails.
inline void UseGpu(int count) {
  for (int i = 0; i < count; ++i) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, 10007 + i) != cudaSuccess) std::_Exit(99);
    if (i + 1 < count && cudaFree(memory) != cudaSuccess) std::_Exit(99);
  }
}

#endif  // TESTS_E2E_FAULTS_USE_GPU_H_
