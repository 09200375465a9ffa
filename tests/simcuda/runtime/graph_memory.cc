// Graphs that a program builds node by node, and the memory nodes in them.
#include "tests/simcuda/runtime/runtime.h"

using sim::InContext;

static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return InContext([&] { return SIM_DRIVER(cuGraphCreate, 10000)(graph, flags); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return InContext(
      [&] { return SIM_DRIVER(cuGraphInstantiateWithFlags, 11040)(executable, graph, flags); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphExecUpdate, 12000)(
        executable, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(result));
  });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     cudaMemAllocNodeParams* parameters) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphAddMemAllocNode, 11040)(
        node, graph, dependencies, count,
        reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count,
                                    void* pointer) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphAddMemFreeNode, 11040)(node, graph, dependencies, count,
                                                    sim::Address(pointer));
  });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           cudaMemAllocNodeParams* parameters) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphMemAllocNodeGetParams, 11040)(
        node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphMemFreeNodeGetParams, 11040)(node, static_cast<CUdeviceptr*>(pointer));
  });
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuDeviceGraphMemTrim, 11040)(device); });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuDeviceGetGraphMemAttribute, 11040)(
        device, static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuDeviceSetGraphMemAttribute, 11040)(
        device, static_cast<CUgraphMem_attribute>(attribute), value);
  });
}
