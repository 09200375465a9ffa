// Devices, versions, and the functions that return driver entry points to callers of the runtime.
#include "tests/simcuda/runtime/runtime.h"

namespace {

#ifndef SIMCUDA_RUNTIME_VERSION
#error "which runtime this is: CMakeLists.txt says"
#endif
constexpr int kRuntimeVersion = SIMCUDA_RUNTIME_VERSION;

cudaError_t EntryPoint(const char* symbol, void** function, int version, unsigned long long flags,
                       cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return sim::Remember(cudaErrorInvalidValue);
  CUdriverProcAddressQueryResult result;
  *function = sim::DriverAddress(symbol, version, flags, &result);
  if (!sim::DriverIsLoaded()) return sim::Remember(cudaErrorInsufficientDriver);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(result);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return sim::WithDriver([&] { return SIM_DRIVER(cuDeviceGetCount, 2000)(count); });
}

cudaError_t cudaGetDevice(int* device) {
  sim::RuntimeCall call(__func__);
  return call.Finish(sim::Remember(sim::SelectedDevice(device)));
}

cudaError_t cudaSetDevice(int device) {
  sim::RuntimeCall call(__func__);
  return call.Finish(sim::Remember(sim::SelectDevice(device)));
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuDeviceGetAttribute, 2000)(value, static_cast<CUdevice_attribute>(attribute),
                                                  device);
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuDeviceGetPCIBusId, 4010)(id, length, device); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return sim::InContext(
      [&] { return SIM_DRIVER(cuCtxGetStreamPriorityRange, 5050)(least, greatest); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return sim::WithDriver(
      [&] { return SIM_DRIVER(cuDeviceCanAccessPeer, 4000)(can, device, peer); });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int flags) {
  return sim::InContext([&] { return SIM_DRIVER(cuCtxEnablePeerAccess, 4000)(nullptr, flags); });
}

cudaError_t cudaDeviceSynchronize() {
  return sim::InContext([] { return SIM_DRIVER(cuCtxSynchronize, 2000)(); });
}

cudaError_t cudaDeviceReset() {
  return sim::InContext([] {
    int device = 0;
    SIM_DRIVER(cuCtxGetDevice, 2000)(&device);
    sim::ForgetPrimary(device);
    SIM_DRIVER(cuCtxSetCurrent, 4000)(nullptr);
    return SIM_DRIVER(cuDevicePrimaryCtxReset, 11000)(device);
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return sim::Remember(SIM_DRIVER(cuDriverGetVersion, 2020)(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

// An unknown name is not an error: the call succeeds, and the status reports that there is no such
// symbol.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return EntryPoint(symbol, function, kRuntimeVersion, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return EntryPoint(symbol, function, static_cast<int>(version), flags, status);
}

cudaError_t cudaProfilerStart() {
  return sim::InContext([] { return CUDA_SUCCESS; });
}

cudaError_t cudaProfilerStop() {
  return sim::InContext([] { return CUDA_SUCCESS; });
}

// The header's cudaEnableDefault selects the caller's kind of default stream.
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
  return EntryPoint(symbol, function, kRuntimeVersion, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function,
                                                  unsigned int version, unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
  return EntryPoint(symbol, function, static_cast<int>(version), flags, status);
}
