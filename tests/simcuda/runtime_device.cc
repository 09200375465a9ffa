// Devices, versions, and the door to the driver that the runtime opens for its callers.
#include "tests/simcuda/runtime.h"

namespace {

constexpr int kRuntimeVersion = 13000;

// Members of cudaDeviceProp and the driver's attributes that they show.
template <typename Member>
struct Property {
  Member cudaDeviceProp::*member;
  CUdevice_attribute attribute;
};
constexpr Property<int> kNumbers[] = {
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor,
     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor,
     CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::canUseHostPointerForRegisteredMem,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
};
constexpr Property<size_t> kSizes[] = {
    {&cudaDeviceProp::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::sharedMemPerBlockOptin,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&cudaDeviceProp::sharedMemPerMultiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::reservedSharedMemPerBlock,
     CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
    {&cudaDeviceProp::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&cudaDeviceProp::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
    {&cudaDeviceProp::texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
};

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
    CUresult result =
        SIM_DRIVER(cuDeviceGetName, 2000)(properties->name, sizeof(properties->name), device);
    if (result != CUDA_SUCCESS) return result;
    SIM_DRIVER(cuDeviceGetUuid, 11040)(&properties->uuid, device);
    SIM_DRIVER(cuDeviceTotalMem, 3020)(&properties->totalGlobalMem, device);
    for (auto& [member, attribute] : kNumbers) properties->*member = Attribute(attribute, device);
    for (auto& [member, attribute] : kSizes) properties->*member = Attribute(attribute, device);
    for (int axis = 0; axis < 3; ++axis) {
      auto of_axis = [&](CUdevice_attribute x) {  // the attributes of y and z follow that of x
        return Attribute(static_cast<CUdevice_attribute>(x + axis), device);
      };
      properties->maxThreadsDim[axis] = of_axis(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
      properties->maxGridSize[axis] = of_axis(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    }
    properties->memoryPoolSupportedHandleTypes =
        Attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, device);
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
