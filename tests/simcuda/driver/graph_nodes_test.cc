#include <gtest/gtest.h>

#include <cmath>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

// Each kernel takes a millisecond on the virtual clock, so elapsed time counts launches.
const std::map<std::string, std::string> kTimed = {{"SIMCUDA_KERNEL_TIME", "1ms"},
                                                   {"SIMCUDA_CLOCK", "virtual"}};

CUgraph Graph() {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  return graph;
}

CUDA_KERNEL_NODE_PARAMS Kernel() {
  CUmodule module = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  EXPECT_EQ(cuModuleLoadData(&module, ""), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&kernel.func, module, "kernel"), CUDA_SUCCESS);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  return kernel;
}

CUgraphNode AddKernel(CUgraph graph) {
  const CUDA_KERNEL_NODE_PARAMS kernel = Kernel();
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  return node;
}

CUgraphExec Instantiate(CUgraph graph) {
  CUgraphExec executable = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  return executable;
}

// Returns how many milliseconds one launch keeps the device busy.
long Launches(CUgraphExec executable) {
  CUevent start = nullptr, end = nullptr;
  cuEventCreate(&start, 0);
  cuEventCreate(&end, 0);
  EXPECT_EQ(cuEventRecord(start, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(end), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  return std::lround(milliseconds);
}

TEST(DriverGraphNodesTest, KernelsAreLaunchesAndEmptyNodesAreNone) {
  OnDevice(kTimed, [] {
    CUgraph graph = Graph();
    CUgraphNode empty = nullptr;
    AddKernel(graph);
    ASSERT_EQ(cuGraphAddEmptyNode(&empty, graph, nullptr, 0), CUDA_SUCCESS);
    AddKernel(graph);
    EXPECT_EQ(Launches(Instantiate(graph)), 2);
  });
}

TEST(DriverGraphNodesTest, ChildGraphIsCopiedWhenItsNodeIsAdded) {
  OnDevice(kTimed, [] {
    CUgraph child = Graph(), graph = Graph(), inside = nullptr;
    CUgraphNode node = nullptr;
    AddKernel(child);
    AddKernel(child);
    ASSERT_EQ(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child), CUDA_SUCCESS);
    AddKernel(child);
    EXPECT_EQ(cuGraphDestroy(child), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphChildGraphNodeGetGraph(node, &inside), CUDA_SUCCESS);
    size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(inside, nullptr, &count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(Launches(Instantiate(graph)), 2);
  });
}

TEST(DriverGraphNodesTest, GenericCallAddsNodesOfEveryType) {
  OnDevice(kTimed, [] {
    CUgraph child = Graph(), graph = Graph();
    AddKernel(child);
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
    parameters.graph.graph = child;
    CUgraphNode node = nullptr;
    ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
    const CUDA_KERNEL_NODE_PARAMS kernel = Kernel();
    parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_KERNEL;
    parameters.kernel.func = kernel.func;
    ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT_EQ(Launches(Instantiate(graph)), 2);
  });
}

TEST(DriverGraphNodesTest, ConditionalNodeHasBodiesThatDoNotRun) {
  OnDevice(kTimed, [] {
    CUgraph graph = Graph();
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
    parameters.conditional.size = 3;
    ASSERT_EQ(cuGraphConditionalHandleCreate(&parameters.conditional.handle, graph, nullptr, 0, 0),
              CUDA_SUCCESS);
    CUgraphNode node = nullptr;
    ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
    for (int body = 0; body < 3; ++body) AddKernel(parameters.conditional.phGraph_out[body]);
    AddKernel(graph);
    EXPECT_EQ(Launches(Instantiate(graph)), 1);
  });
}

TEST(DriverGraphNodesTest, ParametersCanBeSetOnNodesOfTheirType) {
  OnDevice({}, [] {
    CUgraph graph = Graph();
    CUgraphNode kernel = AddKernel(graph), set = nullptr;
    CUDA_MEMSET_NODE_PARAMS zeros = {};
    zeros.elementSize = zeros.width = zeros.height = 1;
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphAddMemsetNode(&set, graph, &kernel, 1, &zeros, context), CUDA_SUCCESS);
    CUgraphExec executable = Instantiate(graph);
    const CUDA_KERNEL_NODE_PARAMS other = Kernel();
    EXPECT_EQ(cuGraphExecKernelNodeSetParams(executable, kernel, &other), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecKernelNodeSetParams(executable, set, &other), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphExecMemsetNodeSetParams(executable, set, &zeros, context), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphUpload(executable, nullptr), CUDA_SUCCESS);
    CUDA_KERNEL_NODE_PARAMS kept = {};
    EXPECT_EQ(cuGraphKernelNodeGetParams(kernel, &kept), CUDA_SUCCESS);
    EXPECT_NE(kept.func, nullptr);
    EXPECT_EQ(kept.gridDimX, 1u);
    EXPECT_EQ(cuGraphKernelNodeGetParams(set, &kept), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverGraphNodesTest, ExecutableIsUpdatedIfItHasAsManyLaunches) {
  OnDevice(kTimed, [] {
    CUgraph graph = Graph(), equal = Graph(), longer = Graph();
    AddKernel(graph);
    AddKernel(equal);
    AddKernel(longer);
    AddKernel(longer);
    CUgraphExec executable = Instantiate(graph);
    CUgraphExecUpdateResultInfo result = {};
    EXPECT_EQ(cuGraphExecUpdate(executable, equal, &result), CUDA_SUCCESS);
    EXPECT_EQ(result.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    EXPECT_EQ(cuGraphExecUpdate(executable, longer, &result), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EXPECT_EQ(result.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_EQ(Launches(executable), 1);
  });
}

TEST(DriverGraphNodesTest, CaptureAddsToAnExistingGraph) {
  OnDevice(kTimed, [] {
    CUgraph graph = Graph(), captured = nullptr;
    AddKernel(graph);
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                          CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    EXPECT_EQ(cuLaunchKernel(Kernel().func, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuStreamEndCapture(stream, &captured), CUDA_SUCCESS);
    EXPECT_EQ(captured, graph);
    EXPECT_EQ(Launches(Instantiate(graph)), 2);
  });
}

}  // namespace
}  // namespace sim
