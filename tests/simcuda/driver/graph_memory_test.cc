#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

CUDA_MEM_ALLOC_NODE_PARAMS Parameters(uint64_t size) {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.bytesize = size;
  return parameters;
}

uint64_t Used() {
  cuuint64_t bytes = 0;
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes),
            CUDA_SUCCESS);
  return bytes;
}

TEST(DriverGraphMemoryTest, MemoryIsAllocatedAtLaunchAndReservedUntilTrim) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUgraph graph = nullptr;
    CUgraphNode allocation = nullptr, free = nullptr;
    CUgraphExec executable = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = Parameters(4 * kMiB);
    ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
    EXPECT_NE(parameters.dptr, 0u);
    ASSERT_EQ(cuGraphAddMemFreeNode(&free, graph, &allocation, 1, parameters.dptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddMemFreeNode(&free, graph, nullptr, 0, parameters.dptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Used(), 0u);
    EXPECT_EQ(FreeMemory(), 60 * kMiB);
    EXPECT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  });
}

TEST(DriverGraphMemoryTest, ProgramFreesWhatTheGraphDoesNotFree) {
  OnDevice({}, [] {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec executable = nullptr;
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    parameters.alloc.poolProps = Parameters(0).poolProps;
    parameters.alloc.bytesize = 2 * kMiB;
    ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
    CUDA_MEM_ALLOC_NODE_PARAMS reported = {};
    EXPECT_EQ(cuGraphMemAllocNodeGetParams(node, &reported), CUDA_SUCCESS);
    EXPECT_EQ(reported.dptr, parameters.alloc.dptr);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(reported.dptr), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Used(), 2 * kMiB);
    EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync(reported.dptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Used(), 0u);
    EXPECT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace sim
