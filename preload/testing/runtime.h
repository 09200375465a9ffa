// The runtime functions that the test programs call, as their own headers would declare them.

#ifndef GMT_PRELOAD_TESTING_RUNTIME_H_
#define GMT_PRELOAD_TESTING_RUNTIME_H_

#include <stddef.h>

extern "C" {
int cudaMalloc(void** ptr, size_t size);
int cudaFree(void* ptr);
int cudaHostAlloc(void** ptr, size_t size, unsigned flags);
int cudaFreeHost(void* ptr);
}

#endif  // GMT_PRELOAD_TESTING_RUNTIME_H_
