#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

CUdeviceptr Allocate(uint64_t size) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
  return address;
}

TEST(DriverContextTest, DestroyedContextFreesItsMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr kept = Allocate(2 * kMiB);
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    CUdeviceptr gone = Allocate(4 * kMiB);
    EXPECT_EQ(FreeMemory(), 58 * kMiB);
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMemFree(gone), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(kept), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(DriverContextTest, DestroyedContextThatIsStillCurrentCannotAllocate) {
  OnDevice({}, [] {
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  });
}

TEST(DriverContextTest, LastReleaseOfThePrimaryContextFreesEverything) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    Allocate(2 * kMiB);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(DriverContextTest, AddressesAreReusedAfterAReset) {
  OnDevice({}, [] {
    CUdeviceptr before = Allocate(2 * kMiB);
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    EXPECT_EQ(Allocate(2 * kMiB), before);
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(before), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverContextTest, PhysicalMemoryOutlivesTheContext) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUmemAllocationProp properties = OnDeviceZero();
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  });
}

TEST(DriverContextTest, LastDetachDestroys) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUcontext context = nullptr, same = nullptr;
    ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    EXPECT_EQ(cuCtxAttach(&same, 0), CUDA_SUCCESS);
    Allocate(2 * kMiB);
    EXPECT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
  });
}

TEST(DriverContextTest, MemoryOfAGreenContextBelongsToThePrimaryOne) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdevResource resource = {};
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    ASSERT_EQ(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    ASSERT_EQ(cuDevResourceGenerateDesc(&description, &resource, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUdeviceptr address = Allocate(2 * kMiB);
    EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace sim
