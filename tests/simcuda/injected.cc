// A tool as CUDA_INJECTION64_PATH names one, for injection_test.cc: it notes what it could do while it
// was being initialised.
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
