// Functions of libcudart.so.12 that CUDA 13's headers do not declare; called by their exported
// names.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/simcuda/device_properties_12.h"
#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

template <typename Function>
Function* Of12(const char* name) {
  static void* library = dlopen(SIMCUDA_LIBRARIES "/libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

TEST(Runtime12Test, PropertiesAreThoseOfTheDevice) {
  InFreshProcess({{"SIMCUDA_MEMORY", "5G"}, {"SIMCUDA_CC", "9.0"}}, [] {
    auto get = Of12<cudaError_t(DeviceProperties12*, int)>("cudaGetDeviceProperties_v2");
    ASSERT_NE(get, nullptr);
    DeviceProperties12 properties;
    ASSERT_EQ(get(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.totalGlobalMem, uint64_t{5} << 30);
    EXPECT_EQ(properties.major, 9);
    EXPECT_EQ(properties.minor, 0);
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_EQ(properties.maxThreadsDim[0], 1024);
    EXPECT_EQ(get(&properties, 1), cudaErrorInvalidDevice);
  });
}

TEST(Runtime12Test, PointerAttributesFillOnlyTheStructureOfCuda12) {
  InFreshProcess({}, [] {
    struct {
      int type, device;
      void *device_pointer, *host_pointer;
      uint64_t behind = 0x1234567890;
    } attributes;
    using Answer = decltype(&attributes);
    auto get = Of12<cudaError_t(Answer, const void*)>("cudaPointerGetAttributes");
    auto allocate = Of12<cudaError_t(void**, size_t)>("cudaMallocHost");
    void* memory = nullptr;
    ASSERT_EQ(allocate(&memory, 16), cudaSuccess);
    EXPECT_EQ(get(&attributes, memory), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(attributes.host_pointer, memory);
    EXPECT_EQ(attributes.behind, uint64_t{0x1234567890});
  });
}

TEST(Runtime12Test, CaptureInfoHasNoEdges) {
  InFreshProcess({}, [] {
    using Handles = const cudaGraphNode_t*;
    auto get = Of12<cudaError_t(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                                cudaGraph_t*, Handles*, size_t*)>("cudaStreamGetCaptureInfo_v2");
    auto create = Of12<cudaError_t(cudaStream_t*)>("cudaStreamCreate");
    auto begin = Of12<cudaError_t(cudaStream_t, cudaStreamCaptureMode)>("cudaStreamBeginCapture");
    cudaStream_t stream = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(create(&stream), cudaSuccess);
    EXPECT_EQ(get(stream, &status, nullptr, &graph, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    ASSERT_EQ(begin(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(get(stream, &status, nullptr, &graph, nullptr, nullptr), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_NE(graph, nullptr);
  });
}

}  // namespace
}  // namespace sim
