// Functions whose form in CUDA 13 differs from that in CUDA 12 (runtime_12.cc) under the same name.
#include "tests/simcuda/device_properties.h"

using sim::InContext;

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return sim::GetProperties(properties, device);
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
