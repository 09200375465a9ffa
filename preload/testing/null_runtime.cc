// A CUDA runtime without cost: addresses count up, nothing is checked, and no call allocates, locks
// or enters the kernel. A test measures only the hook through it.

#include <stddef.h>
#include <string.h>

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

NULL_EXPORT int cudaEventCreateWithFlags(void** event, unsigned) {
  *event = reinterpret_cast<void*>(0xe0);
  return 0;
}
NULL_EXPORT int cudaEventRecord(void*, void*) { return 0; }
NULL_EXPORT int cudaStreamSynchronize(void*) { return 0; }

// The driver functions that hooks query for the context and its device.
NULL_EXPORT int cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(0xc0);
  return 0;
}
NULL_EXPORT int cuCtxGetDevice(int* device) {
  *device = 3;
  return 0;
}

// The driver's description of a device.
NULL_EXPORT int cuDeviceGetName(char* name, int length, int) {
  strncpy(name, "Null device", static_cast<size_t>(length));
  return 0;
}
NULL_EXPORT int cuDeviceGetUuid_v2(char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<char>(16 * i + device);
  return 0;
}
NULL_EXPORT int cuDeviceGetPCIBusId(char* id, int length, int) {
  strncpy(id, "0000:65:00.0", static_cast<size_t>(length));
  return 0;
}
NULL_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}
NULL_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;  // the compute capability, major and minor
  return 0;
}
