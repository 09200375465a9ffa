// Functions whose form in CUDA 12 differs from that in CUDA 13 (runtime_13.cc) under the same name,
// or that CUDA 13 dropped. The headers are those of CUDA 13, so each gets its exported name by a
// label. The cudaGetDeviceProperties of CUDA 11 is missing; programs of CUDA 12 call
// cudaGetDeviceProperties_v2.
#include "tests/simcuda/device_properties.h"
#include "tests/simcuda/device_properties_12.h"

using sim::InContext;

#define SIM_EXPORT(name) __asm__(name) __attribute__((visibility("default")))

namespace {

cudaMemLocation OnDevice(int device) {
  cudaMemLocation location = {};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device;
  return location;
}

}  // namespace

extern "C" {

cudaError_t GetDeviceProperties12(sim::DeviceProperties12*, int)
    SIM_EXPORT("cudaGetDeviceProperties_v2");
cudaError_t GetDeviceProperties12(sim::DeviceProperties12* properties, int device) {
  return sim::GetProperties(properties, device);
}

cudaError_t GetCaptureInfo12(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                             cudaGraph_t*, const cudaGraphNode_t**, size_t*)
    SIM_EXPORT("cudaStreamGetCaptureInfo_v2");
cudaError_t GetCaptureInfo12(cudaStream_t stream, cudaStreamCaptureStatus* status,
                             unsigned long long* id, cudaGraph_t* graph,
                             const cudaGraphNode_t** dependencies, size_t* count) {
  return InContext([&] {
    return SIM_DRIVER(cuStreamGetCaptureInfo, 12030)(
        stream, reinterpret_cast<CUstreamCaptureStatus*>(status), reinterpret_cast<cuuint64_t*>(id),
        graph, dependencies, nullptr, count);
  });
}

cudaError_t Prefetch12(const void*, size_t, int, cudaStream_t) SIM_EXPORT("cudaMemPrefetchAsync");
cudaError_t Prefetch12(const void* pointer, size_t size, int device, cudaStream_t stream) {
  return sim::Prefetch(pointer, size, OnDevice(device), 0, stream);
}

cudaError_t Prefetch12v2(const void*, size_t, cudaMemLocation, unsigned int, cudaStream_t)
    SIM_EXPORT("cudaMemPrefetchAsync_v2");
cudaError_t Prefetch12v2(const void* pointer, size_t size, cudaMemLocation location,
                         unsigned int flags, cudaStream_t stream) {
  return sim::Prefetch(pointer, size, location, flags, stream);
}

cudaError_t Advise12(const void*, size_t, cudaMemoryAdvise, int) SIM_EXPORT("cudaMemAdvise");
cudaError_t Advise12(const void* pointer, size_t size, cudaMemoryAdvise advice, int device) {
  return sim::Advise(pointer, size, advice, OnDevice(device));
}

cudaError_t Advise12v2(const void*, size_t, cudaMemoryAdvise, cudaMemLocation)
    SIM_EXPORT("cudaMemAdvise_v2");
cudaError_t Advise12v2(const void* pointer, size_t size, cudaMemoryAdvise advice,
                       cudaMemLocation location) {
  return sim::Advise(pointer, size, advice, location);
}

cudaError_t GraphAddNode12(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                           cudaGraphNodeParams*) SIM_EXPORT("cudaGraphAddNode");
cudaError_t GraphAddNode12(cudaGraphNode_t* node, cudaGraph_t graph,
                           const cudaGraphNode_t* dependencies, size_t count,
                           cudaGraphNodeParams* parameters) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphAddNode, 12030)(node, graph, dependencies, nullptr, count,
                                             reinterpret_cast<CUgraphNodeParams*>(parameters));
  });
}

cudaError_t GraphAddNode12v2(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                             const cudaGraphEdgeData*, size_t, cudaGraphNodeParams*)
    SIM_EXPORT("cudaGraphAddNode_v2");
cudaError_t GraphAddNode12v2(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                             size_t count, cudaGraphNodeParams* parameters) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphAddNode, 12030)(node, graph, dependencies,
                                             reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                             reinterpret_cast<CUgraphNodeParams*>(parameters));
  });
}

cudaError_t ThreadExit12() SIM_EXPORT("cudaThreadExit");
cudaError_t ThreadExit12() { return cudaDeviceReset(); }

cudaError_t ThreadSynchronize12() SIM_EXPORT("cudaThreadSynchronize");
cudaError_t ThreadSynchronize12() { return cudaDeviceSynchronize(); }

}  // extern "C"
