// Graph nodes that do not allocate memory. Kernels, copies, sets and host functions are one launch
// each. A child graph contributes the launches of its graph, which is copied as by the real driver.
// Other nodes cause no launches.
//
// Launched work does nothing, so nodes of an executable keep the name and the size with which they
// were instantiated when they get new parameters.
#include <algorithm>

#include "tests/simcuda/driver/graph.h"

namespace {

using sim::Call;
using sim::CallGroup;
using sim::Notice;
using sim::Simulator;
using sim::WorkKind;

bool IsLaunch(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_HOST;
}

template <typename Parameters>
Notice KernelOf(const Parameters& kernel) {
  const CUfunc_st* function = kernel.func;
  if (function == nullptr && kernel.kern != nullptr) function = &kernel.kern->function;
  return {.name = function != nullptr ? function->name : nullptr,
          .work = WorkKind::kKernel,
          .grid = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
          .block = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
          .shared_memory = kernel.sharedMemBytes};
}

Notice CopyOf(const CUDA_MEMCPY3D& copy) {
  return {.work = WorkKind::kCopy,
          .from = sim::Memory::kDevice,
          .to = sim::Memory::kDevice,
          .size = copy.WidthInBytes * copy.Height * copy.Depth};
}

template <typename Parameters>
Notice SetOf(const Parameters& set) {
  return {.work = WorkKind::kSet,
          .to = sim::Memory::kDevice,
          .value = set.value,
          .size = set.elementSize * set.width * set.height};
}

std::shared_ptr<CUgraph_st> Copy(const CUgraph_st& graph) {
  auto copy = std::make_shared<CUgraph_st>();
  copy->number = graph.number;
  for (const auto& node : graph.nodes) {
    copy->nodes.push_back(std::make_unique<CUgraphNode_st>(*node));
    copy->nodes.back()->graph = copy.get();
  }
  return copy;
}

CUresult Add(const char* name, CUgraphNode* node, CUgraph graph, CUgraphNodeType type,
             const Notice& work = {}) {
  return Call(name, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *node = sim::AddNode(graph, type);
    (*node)->work = work;
    return CUDA_SUCCESS;
  });
}

CUresult AddChild(const char* name, CUgraphNode* node, CUgraph graph, CUgraph child) {
  return Call(name, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || graph == nullptr || child == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *node = sim::AddNode(graph, CU_GRAPH_NODE_TYPE_GRAPH);
    (*node)->children = {Copy(*child)};
    return CUDA_SUCCESS;
  });
}

// The bodies are graphs that the program fills in. None of them runs, because the condition is
// computed on the device.
CUresult AddConditional(const char* name, CUgraphNode* node, CUgraph graph,
                        CUDA_CONDITIONAL_NODE_PARAMS& parameters) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    if (node == nullptr || graph == nullptr || parameters.size == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *node = sim::AddNode(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    for (unsigned int i = 0; i < parameters.size; ++i) {
      (*node)->children.push_back(std::make_shared<CUgraph_st>());
      (*node)->children.back()->number = simulator.next_graph_number++;
      (*node)->bodies.push_back((*node)->children.back().get());
    }
    parameters.phGraph_out = (*node)->bodies.data();
    return CUDA_SUCCESS;
  });
}

// The function of a captured node is not known, nor are the arguments of any node.
template <typename Parameters>
CUresult GetKernel(const char* name, CUgraphNode node, Parameters* parameters) {
  return Call(name, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL || parameters == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const Notice& work = node->work;
    *parameters = {.func = node->function,
                   .gridDimX = work.grid[0],
                   .gridDimY = work.grid[1],
                   .gridDimZ = work.grid[2],
                   .blockDimX = work.block[0],
                   .blockDimY = work.block[1],
                   .blockDimZ = work.block[2],
                   .sharedMemBytes = work.shared_memory};
    return CUDA_SUCCESS;
  });
}

template <typename Parameters>
CUresult AddKernel(const char* name, CUgraphNode* node, CUgraph graph,
                   const Parameters& parameters) {
  CUresult result = Add(name, node, graph, CU_GRAPH_NODE_TYPE_KERNEL, KernelOf(parameters));
  if (result == CUDA_SUCCESS) (*node)->function = parameters.func;
  return result;
}

CUresult SetParameters(const char* name, CUgraphExec executable, CUgraphNode node,
                       CUgraphNodeType type) {
  return Call(name, CallGroup::kOther, [&](Simulator&) {
    if (executable == nullptr || node == nullptr || node->type != type) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUgraphNode sim::AddNode(CUgraph graph, CUgraphNodeType type) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  node->graph = graph;
  return node;
}

CUresult sim::AddNodeWithoutMemory(const char* name, CUgraphNode* node, CUgraph graph,
                                   CUgraphNodeParams& parameters) {
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return AddKernel(name, node, graph, parameters.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return Add(name, node, graph, parameters.type, CopyOf(parameters.memcpy.copyParams));
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return Add(name, node, graph, parameters.type, SetOf(parameters.memset));
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return AddChild(name, node, graph, parameters.graph.graph);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return AddConditional(name, node, graph, parameters.conditional);
    default:
      return Add(name, node, graph, parameters.type);
  }
}

void sim::AppendNodes(const CUgraph_st& graph, CUgraphExec_st& executable) {
  for (const auto& node : graph.nodes) {
    if (node->memory != nullptr || node->freed != 0) {
      executable.steps.push_back({node->memory, node->freed});
    } else if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
      AppendNodes(*node->children[0], executable);
    } else if (IsLaunch(node->type)) {
      executable.work.push_back(node->work);
    }
  }
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddKernel(__func__, node, graph, *parameters);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return GetKernel(__func__, node, parameters);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  return GetKernel(__func__, node, parameters);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_MEMCPY3D* copy, CUcontext) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(__func__, node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, CopyOf(*copy));
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(__func__, node, graph, CU_GRAPH_NODE_TYPE_MEMSET, SetOf(*set));
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t) {
  return Add(__func__, node, graph, CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                  CUgraph child) {
  return AddChild(__func__, node, graph, child);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
    *graph = node->children[0].get();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                        unsigned int, unsigned int) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (handle == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = simulator.next_graph_number++;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID,
                                       const CUkernelNodeAttrValue*) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    bool kernel = node != nullptr && node->type == CU_GRAPH_NODE_TYPE_KERNEL;
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS*) {
  return SetParameters(__func__, executable, node, CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D*, CUcontext) {
  return SetParameters(__func__, executable, node, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS*, CUcontext) {
  return SetParameters(__func__, executable, node, CU_GRAPH_NODE_TYPE_MEMSET);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph) {
  return SetParameters(__func__, executable, node, CU_GRAPH_NODE_TYPE_GRAPH);
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream) {
  return Call(__func__, CallGroup::kOther, [&](Simulator&) {
    return executable != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
