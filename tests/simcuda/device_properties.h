// Fills in the properties of a device. The structures of CUDA 12 and CUDA 13 differ, but the
// members set here have the same names in both.
#ifndef TESTS_SIMCUDA_DEVICE_PROPERTIES_H_
#define TESTS_SIMCUDA_DEVICE_PROPERTIES_H_

#include "tests/simcuda/runtime/runtime.h"

namespace sim {

// A member of `Properties` and the corresponding attribute of the driver.
template <typename Properties, typename Member>
struct Property {
  Member Properties::*member;
  CUdevice_attribute attribute;
};

template <typename Properties>
inline constexpr Property<Properties, int> kNumbers[] = {
    {&Properties::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&Properties::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&Properties::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&Properties::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&Properties::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&Properties::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&Properties::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&Properties::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&Properties::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&Properties::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&Properties::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&Properties::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&Properties::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&Properties::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&Properties::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&Properties::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&Properties::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&Properties::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&Properties::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&Properties::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&Properties::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&Properties::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&Properties::canUseHostPointerForRegisteredMem,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&Properties::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&Properties::ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
};

template <typename Properties>
inline constexpr Property<Properties, size_t> kSizes[] = {
    {&Properties::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&Properties::sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&Properties::sharedMemPerMultiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&Properties::reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
    {&Properties::memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
    {&Properties::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&Properties::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
    {&Properties::texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
};

inline int DeviceAttribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  SIM_DRIVER(cuDeviceGetAttribute, 2000)(&value, attribute, device);
  return value;
}

template <typename Properties>
cudaError_t GetProperties(Properties* properties, int device) {
  return WithDriver([&] {
    *properties = {};
    CUresult result =
        SIM_DRIVER(cuDeviceGetName, 2000)(properties->name, sizeof(properties->name), device);
    if (result != CUDA_SUCCESS) return result;
    SIM_DRIVER(cuDeviceGetUuid, 11040)(&properties->uuid, device);
    SIM_DRIVER(cuDeviceTotalMem, 3020)(&properties->totalGlobalMem, device);
    for (auto& [member, attribute] : kNumbers<Properties>) {
      properties->*member = DeviceAttribute(attribute, device);
    }
    for (auto& [member, attribute] : kSizes<Properties>) {
      properties->*member = DeviceAttribute(attribute, device);
    }
    for (int axis = 0; axis < 3; ++axis) {
      auto of_axis = [&](CUdevice_attribute x) {  // the attributes of y and z follow that of x
        return DeviceAttribute(static_cast<CUdevice_attribute>(x + axis), device);
      };
      properties->maxThreadsDim[axis] = of_axis(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
      properties->maxGridSize[axis] = of_axis(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    }
    properties->memoryPoolSupportedHandleTypes =
        DeviceAttribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, device);
    return CUDA_SUCCESS;
  });
}

}  // namespace sim

#endif  // TESTS_SIMCUDA_DEVICE_PROPERTIES_H_
