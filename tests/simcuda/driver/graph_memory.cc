// Memory nodes of graphs. An allocation node has its address from its creation; memory is mapped to
// it when the graph runs, from a pool shared by the graphs of a device. It stays until a free node,
// cuMemFree, cuMemFreeAsync, or the next launch of a graph that frees automatically.
#include <algorithm>

#include "tests/simcuda/driver/graph.h"

namespace {

using sim::Bits;
using sim::Call;
using sim::CallGroup;
using sim::Device;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

CUresult AddAllocation(const char* name, CUgraphNode* node, CUgraph graph,
                       const CUmemPoolProps& properties, uint64_t size, CUdeviceptr* address) {
  Record asked{.size = size, .handle = Bits(graph), .device = properties.location.id};
  return MemoryCall(name, CallGroup::kAlloc, asked, [&](Simulator& simulator, Record& record) {
    Device* device = simulator.device(record.device);
    if (node == nullptr || graph == nullptr || size == 0 ||
        properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE || device == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto memory = std::make_shared<GraphMemory>(device, size);
    if (memory->address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = record.address = memory->address;
    *node = sim::AddNode(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    (*node)->memory = std::move(memory);
    (*node)->pool = properties;
    return CUDA_SUCCESS;
  });
}

CUresult AddFree(const char* name, CUgraphNode* node, CUgraph graph, CUdeviceptr address) {
  Record asked{.address = address, .handle = Bits(graph)};
  return MemoryCall(name, CallGroup::kFree, asked, [&](Simulator& simulator, Record& record) {
    if (node == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // The address belongs to this graph, or is live memory of another one.
    uint64_t size = 0;
    for (auto& other : graph->nodes) {
      if (other->freed == address) return CUDA_ERROR_INVALID_VALUE;
      if (other->memory != nullptr && other->memory->address == address) size = other->memory->size;
    }
    auto live = simulator.allocations.find(address);
    if (live != simulator.allocations.end() && live->second.kind == MemoryKind::kGraph) {
      size = live->second.size;
    }
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    record.size = size;
    *node = sim::AddNode(graph, CU_GRAPH_NODE_TYPE_MEM_FREE);
    (*node)->freed = address;
    return CUDA_SUCCESS;
  });
}

CUresult AddAny(const char* name, CUgraphNode* node, CUgraph graph, CUgraphNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    return AddAllocation(name, node, graph, parameters->alloc.poolProps, parameters->alloc.bytesize,
                         &parameters->alloc.dptr);
  }
  if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return AddFree(name, node, graph, parameters->free.dptr);
  }
  return sim::AddNodeWithoutMemory(name, node, graph, *parameters);
}

// Takes the node's memory from the pool of graphs, which grows if necessary.
CUresult MapMemoryOf(Simulator& simulator, CUcontext context, const GraphMemory& memory,
                     bool auto_free) {
  auto live = simulator.allocations.find(memory.address);
  if (live != simulator.allocations.end()) {
    if (!auto_free) return CUDA_ERROR_INVALID_VALUE;
    simulator.Remove(live);
  }
  sim::GraphPool& pool = memory.device->graph_pool();
  uint64_t used = pool.used + sim::RoundUp(memory.size, sim::kPage);
  if (used > pool.reserved) {
    if (!memory.device->budget().Take(used - pool.reserved)) return CUDA_ERROR_OUT_OF_MEMORY;
    pool.reserved = used;
  }
  pool.used = used;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  simulator.Add(memory.address, {.kind = MemoryKind::kGraph,
                                 .size = memory.size,
                                 .device = memory.device->ordinal(),
                                 .context = context});
  return CUDA_SUCCESS;
}

}  // namespace

GraphMemory::GraphMemory(sim::Device* device, uint64_t size)
    : device(device),
      size(size),
      address(device->Reserve(sim::RoundUp(size, sim::kPage), sim::kPage, 0)) {}

// Memory may still be live when the last owner ends (the graph was destroyed after a launch that
// freed nothing). The addresses are then never reused, because the memory at them lives on.
GraphMemory::~GraphMemory() {
  auto& allocations = Simulator::Get().allocations;
  if (address == 0 || allocations.contains(address)) return;
  device->Unreserve(address, sim::RoundUp(size, sim::kPage));
}

CUresult sim::RunMemoryNodes(Simulator& simulator, CUgraphExec executable) {
  if (executable->steps.empty()) return CUDA_SUCCESS;
  CUcontext context = nullptr;
  if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
  for (const CUgraphExec_st::Step& step : executable->steps) {
    if (step.memory != nullptr) {
      CUresult result = MapMemoryOf(simulator, context, *step.memory, executable->auto_free);
      if (result != CUDA_SUCCESS) return result;
    } else if (auto live = simulator.allocations.find(step.freed);
               live != simulator.allocations.end()) {
      simulator.Remove(live);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  sim::Arguments arguments(node, graph, dependencies, count, parameters);
  sim::ApiCall call(__func__, arguments.data());
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddAllocation(__func__, node, graph, parameters->poolProps, parameters->bytesize,
                       &parameters->dptr);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
  sim::Arguments arguments(node, graph, dependencies, count, address);
  sim::ApiCall call(__func__, arguments.data());
  return AddFree(__func__, node, graph, address);
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters) {
  sim::Arguments arguments(node, graph, dependencies, count, parameters);
  sim::ApiCall call(__func__, arguments.data());
  return AddAny(__func__, node, graph, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count,
                           CUgraphNodeParams* parameters) {
  sim::Arguments arguments(node, graph, dependencies, edges, count, parameters);
  sim::ApiCall call(__func__, arguments.data());
  return AddAny(__func__, node, graph, parameters);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || node->memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *parameters = {};
    parameters->poolProps = node->pool;
    parameters->bytesize = node->memory->size;
    parameters->dptr = node->memory->address;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || node->freed == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = node->freed;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return Call(__func__, CallGroup::kFree, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    sim::GraphPool& pool = device->graph_pool();
    device->budget().Return(pool.reserved - pool.used);
    pool.reserved = pool.used;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const sim::GraphPool& pool = device->graph_pool();
    auto answer = [&](uint64_t bytes) {
      *static_cast<cuuint64_t*>(value) = bytes;
      return CUDA_SUCCESS;
    };
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        return answer(pool.used);
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return answer(pool.used_high);
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return answer(pool.reserved);
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return answer(pool.reserved_high);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

// Only the high-water marks can be set, and only to the current amounts.
CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void*) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    sim::GraphPool& pool = device->graph_pool();
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
      pool.used_high = pool.used;
    } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
      pool.reserved_high = pool.reserved;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}
