// Devices, versions, and the door to the driver that the runtime opens for its callers.
#include "tests/simcuda/runtime.h"

namespace {

constexpr int kRuntimeVersion = 13000;

int Attribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  SIM_DRIVER(cuDeviceGetAttribute, 2000)(&value, attribute, device);
  return value;
}

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

cudaError_t cudaGetDevice(int* device) { return sim::Remember(sim::SelectedDevice(device)); }

cudaError_t cudaSetDevice(int device) { return sim::Remember(sim::SelectDevice(device)); }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuDeviceGetAttribute, 2000)(value, static_cast<CUdevice_attribute>(attribute),
                                                  device);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return sim::WithDriver([&] {
    *properties = {};
    cudaDeviceProp& p = *properties;
    CUresult result = SIM_DRIVER(cuDeviceGetName, 2000)(p.name, sizeof(p.name), device);
    if (result != CUDA_SUCCESS) return result;
    SIM_DRIVER(cuDeviceGetUuid, 11040)(&p.uuid, device);
    SIM_DRIVER(cuDeviceTotalMem, 3020)(&p.totalGlobalMem, device);
    auto get = [device](CUdevice_attribute attribute) { return Attribute(attribute, device); };
    p.major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p.minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p.sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p.sharedMemPerBlockOptin = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p.sharedMemPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p.reservedSharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    p.regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p.regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p.warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p.memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p.maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    p.maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    p.maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    p.maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    p.maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    p.maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    p.totalConstMem = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p.textureAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    p.texturePitchAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    p.multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p.maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p.maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    p.canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
    p.concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
    p.ECCEnabled = get(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    p.pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    p.asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    p.unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
    p.memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    p.l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p.streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
    p.managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    p.concurrentManagedAccess = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    p.cooperativeLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
    p.hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    p.canUseHostPointerForRegisteredMem =
        get(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    p.memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    p.memoryPoolSupportedHandleTypes = get(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
    p.ipcEventSupported = get(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    return CUDA_SUCCESS;
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

// An unknown name is no error: the call succeeds and the status says that there is no such symbol.
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
