// A CUDA runtime that costs nothing: addresses count up, nothing is checked, no call allocates,
// locks or enters the kernel. What a test measures through it is the hook alone.

#include <stddef.h>

#include <atomic>

#include "preload/testing/runtime.h"

namespace {
std::atomic<unsigned long long> next_address{0x300000000000};
std::atomic<bool> recycled_taken{false};
void* const kRecycled = reinterpret_cast<void*>(0x200000000000);
}  // namespace

#define NULL_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
__attribute__((visibility("default"))) volatile int null_runtime_refuses_frees = 0,
                                                    null_runtime_free_may_return = 0;
}

NULL_EXPORT int cudaMalloc(void** ptr, size_t size) {
  if (size == 0) return 1;  // cudaErrorInvalidValue
  if (size == kRecycledSize) {
    while (recycled_taken.exchange(true)) {
    }
    *ptr = kRecycled;
    return 0;
  }
  *ptr = reinterpret_cast<void*>(next_address.fetch_add((size + 511) & ~size_t{511}));
  return 0;
}
NULL_EXPORT int cudaFree(void* ptr) {
  if (ptr == reinterpret_cast<void*>(0x1000) || null_runtime_refuses_frees != 0) return 1;
  if (ptr == kRecycled) {
    recycled_taken.store(false);
    while (null_runtime_free_may_return == 0) {
    }
  }
  return 0;
}
NULL_EXPORT int cudaHostAlloc(void** ptr, size_t size, unsigned) { return cudaMalloc(ptr, size); }
NULL_EXPORT int cudaFreeHost(void*) { return 0; }

NULL_EXPORT int cudaEventRecord(void*, void*) { return 0; }
NULL_EXPORT int cudaStreamSynchronize(void*) { return 0; }

// The driver's part that hooks ask for the context and its device.
NULL_EXPORT int cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(0xc0);
  return 0;
}
NULL_EXPORT int cuCtxGetDevice(int* device) {
  *device = 3;
  return 0;
}
