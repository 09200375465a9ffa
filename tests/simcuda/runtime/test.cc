#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/simcuda/on_device.h"
#include "tests/simcuda/runtime/cudart_api.h"

namespace sim {
namespace {

TEST(RuntimeTest, FailureStaysTheLastErrorUntilItIsFetched) {
  InFreshProcess({{"SIMCUDA_MEMORY", "8M"}}, [] {
    void *fits = nullptr, *fails = nullptr;
    EXPECT_EQ(cudaMalloc(&fails, 16 * kMiB), cudaErrorMemoryAllocation);
    EXPECT_EQ(fails, nullptr);
    EXPECT_EQ(cudaMalloc(&fits, 1), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}

TEST(RuntimeTest, LastErrorBelongsToItsThread) {
  InFreshProcess({}, [] {
    EXPECT_EQ(cudaFree(reinterpret_cast<void*>(16)), cudaErrorInvalidValue);
    std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  });
}

TEST(RuntimeTest, EventThatIsNotReadySetsTheLastError) {
  InFreshProcess({{"SIMCUDA_LAG", "10"}}, [] {
    cudaEvent_t event = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory, 0, 16, nullptr), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  });
}

TEST(RuntimeTest, FreeOfNullActivatesThePrimaryContext) {
  InFreshProcess({}, [] {
    unsigned int flags = 0;
    int active = 1;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 0);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 1);
  });
}

TEST(RuntimeTest, DeviceIsChosenPerThread) {
  InFreshProcess({{"SIMCUDA_DEVICES", "2"}}, [] {
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 1);
    std::thread([] {
      int other = -1;
      EXPECT_EQ(cudaGetDevice(&other), cudaSuccess);
      EXPECT_EQ(other, 0);
    }).join();
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  });
}

TEST(RuntimeTest, HostPointerIsUnregistered) {
  InFreshProcess({}, [] {
    int local = 0;
    void* memory = nullptr;
    cudaPointerAttributes attributes;
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.device, 0);
  });
}

TEST(RuntimeTest, UnknownEntryPointIsReportedByTheStatus) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 12000, 0, &status),
            cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, 0, &status),
            cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
}

TEST(RuntimeTest, RegisteredKernelIsAFunctionThatTheDriverLaunches) {
  InFreshProcess({}, [] {
    static char kernel, other;
    void** binary = __cudaRegisterFatBinary(nullptr);
    __cudaRegisterFunction(binary, &kernel, nullptr, "kernel", -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    cudaFunction_t function = nullptr;
    ASSERT_EQ(cudaGetFuncBySymbol(&function, &kernel), cudaSuccess);
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cudaGetFuncBySymbol(&function, &other), cudaErrorInvalidDeviceFunction);
  });
}

TEST(RuntimeTest, UnimplementedFunctionIsNotSupported) {
  EXPECT_EQ(cudaUserObjectRelease(nullptr, 1), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(RuntimeTest, NoVisibleDeviceIsAnError) {
  InFreshProcess({{"CUDA_VISIBLE_DEVICES", ""}}, [] {
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    EXPECT_EQ(count, 0);
  });
}

}  // namespace
}  // namespace sim
