// The runtime functions that the test programs call, as CUDA's headers would declare them.

#ifndef GMT_PRELOAD_TESTING_RUNTIME_H_
#define GMT_PRELOAD_TESTING_RUNTIME_H_

#include <stddef.h>

extern "C" {
int cudaMalloc(void** ptr, size_t size);
int cudaFree(void* ptr);
int cudaHostAlloc(void** ptr, size_t size, unsigned flags);
int cudaFreeHost(void* ptr);

// Not part of CUDA: all frees fail; the free of recycled memory may return.
extern volatile int null_runtime_refuses_frees, null_runtime_free_may_return;
}

// All allocations of this size get the same address, which is reused while its free is in progress.
inline constexpr size_t kRecycledSize = 5000001;

#endif  // GMT_PRELOAD_TESTING_RUNTIME_H_
