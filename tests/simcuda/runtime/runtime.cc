#include "tests/simcuda/runtime/runtime.h"

#include <mutex>

#include "tests/simcuda/settings.h"

namespace sim {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int chosen_device = 0;

std::mutex primaries_mutex;
CUcontext primaries[Settings::kMaxDevices];  // retained once each, never released

CUresult Primary(int device, CUcontext* context) {
  if (device < 0 || device >= Settings::kMaxDevices) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> lock(primaries_mutex);
  if (primaries[device] == nullptr) {
    CUcontext retained = nullptr;
    CUresult result = SIM_DRIVER(cuDevicePrimaryCtxRetain, 7000)(&retained, device);
    if (result != CUDA_SUCCESS) return result;
    primaries[device] = retained;
  }
  *context = primaries[device];
  return CUDA_SUCCESS;
}

}  // namespace

cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

CUresult InitializeDriver() { return SIM_DRIVER(cuInit, 2000)(0); }

CUresult EnsureContext() {
  CUcontext current = nullptr;
  CUresult result = SIM_DRIVER(cuCtxGetCurrent, 4000)(&current);
  if (result == CUDA_SUCCESS && current != nullptr) return CUDA_SUCCESS;
  return SelectDevice(chosen_device);
}

CUresult SelectDevice(int device) {
  CUresult result = InitializeDriver();
  if (result != CUDA_SUCCESS) return result;
  CUcontext context = nullptr;
  result = Primary(device, &context);
  if (result != CUDA_SUCCESS) return result;
  chosen_device = device;
  return SIM_DRIVER(cuCtxSetCurrent, 4000)(context);
}

CUresult SelectedDevice(int* device) {
  CUresult result = InitializeDriver();
  if (result != CUDA_SUCCESS) return result;
  CUcontext current = nullptr;
  SIM_DRIVER(cuCtxGetCurrent, 4000)(&current);
  if (current != nullptr) return SIM_DRIVER(cuCtxGetDevice, 2000)(device);
  *device = chosen_device;
  return CUDA_SUCCESS;
}

void ForgetPrimary(int device) {
  std::lock_guard<std::mutex> lock(primaries_mutex);
  primaries[device] = nullptr;
}

}  // namespace sim

cudaError_t cudaGetLastError() {
  cudaError_t error = sim::last_error;
  sim::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return sim::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIM_NAME(code) \
  case code:           \
    return #code;
    SIM_NAME(cudaSuccess)
    SIM_NAME(cudaErrorInvalidValue)
    SIM_NAME(cudaErrorMemoryAllocation)
    SIM_NAME(cudaErrorInitializationError)
    SIM_NAME(cudaErrorInsufficientDriver)
    SIM_NAME(cudaErrorNoDevice)
    SIM_NAME(cudaErrorInvalidDevice)
    SIM_NAME(cudaErrorDeviceUninitialized)
    SIM_NAME(cudaErrorMapBufferObjectFailed)
    SIM_NAME(cudaErrorOperatingSystem)
    SIM_NAME(cudaErrorInvalidResourceHandle)
    SIM_NAME(cudaErrorIllegalState)
    SIM_NAME(cudaErrorSymbolNotFound)
    SIM_NAME(cudaErrorNotReady)
    SIM_NAME(cudaErrorIllegalAddress)
    SIM_NAME(cudaErrorPeerAccessAlreadyEnabled)
    SIM_NAME(cudaErrorHostMemoryAlreadyRegistered)
    SIM_NAME(cudaErrorHostMemoryNotRegistered)
    SIM_NAME(cudaErrorLaunchFailure)
    SIM_NAME(cudaErrorInvalidDeviceFunction)
    SIM_NAME(cudaErrorNotSupported)
    SIM_NAME(cudaErrorStreamCaptureUnsupported)
    SIM_NAME(cudaErrorStreamCaptureUnmatched)
#undef SIM_NAME
    default:
      return error == cudaErrorUnknown ? "cudaErrorUnknown" : "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorInsufficientDriver) return "there is no CUDA driver (libcuda.so.1)";
  const char* text = nullptr;
  SIM_DRIVER(cuGetErrorString, 6000)(static_cast<CUresult>(error), &text);
  return text != nullptr ? text : "unrecognized error code";
}

// Every exported function that is not implemented jumps here (CMakeLists.txt, "stubs").
extern "C" cudaError_t SimNotSupported() { return sim::Remember(cudaErrorNotSupported); }
