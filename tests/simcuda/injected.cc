// A tool for CUDA_INJECTION64_PATH, used by injection_test.cc: it records what it could do during
// its initialisation.
#include <cuda.h>
#include <cupti.h>

extern "C" {
int simcuda_injected_calls = 0;
CUresult simcuda_injected_devices = CUDA_ERROR_UNKNOWN;
CUptiResult simcuda_injected_subscribed = CUPTI_ERROR_UNKNOWN;

__attribute__((visibility("default"))) int InitializeInjection() {
  static CUpti_SubscriberHandle subscriber = nullptr;
  int count = 0;
  ++simcuda_injected_calls;
  simcuda_injected_devices = cuDeviceGetCount(&count);
  simcuda_injected_subscribed = cuptiSubscribe(
      &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
  return 1;
}
}
