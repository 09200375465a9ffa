// Functions that CUDA 13 has in another form than CUDA 12 (runtime_12.cc) under the same name.
#include "tests/simcuda/runtime.h"

using sim::InContext;

namespace {

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

}  // namespace

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

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return InContext([&] {
    return SIM_DRIVER(cuStreamGetCaptureInfo, 12030)(
        stream, reinterpret_cast<CUstreamCaptureStatus*>(status), reinterpret_cast<cuuint64_t*>(id),
        graph, dependencies, reinterpret_cast<const CUgraphEdgeData**>(edges), count);
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphNodeGetDependencies, 12030)(
        node, dependencies, reinterpret_cast<CUgraphEdgeData*>(edges), count);
  });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                             size_t count, cudaGraphNodeParams* parameters) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphAddNode, 12030)(node, graph, dependencies,
                                             reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                             reinterpret_cast<CUgraphNodeParams*>(parameters));
  });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
  return sim::Prefetch(pointer, size, location, flags, stream);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  return sim::Advise(pointer, size, advice, location);
}

static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemGetDefaultMemPool, 13000)(
        pool, reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type));
  });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                              cudaMemAllocationType type) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemGetMemPool, 13000)(pool, reinterpret_cast<CUmemLocation*>(location),
                                              static_cast<CUmemAllocationType>(type));
  });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemSetMemPool, 13000)(reinterpret_cast<CUmemLocation*>(location),
                                              static_cast<CUmemAllocationType>(type), pool);
  });
}
