#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

uint64_t PoolAttribute(CUmemPool_attribute attribute) {
  CUmemoryPool pool = nullptr;
  cuuint64_t value = 0;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
  return value;
}

void SetThreshold(cuuint64_t bytes) {
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes), CUDA_SUCCESS);
}

CUdeviceptr AllocAsync(uint64_t size) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocAsync(&address, size, nullptr), CUDA_SUCCESS);
  return address;
}

TEST(DriverPoolsTest, PoolCountsWhatIsUsedAndWhatIsReserved) {
  OnDevice({}, [] {
    CUdeviceptr address = AllocAsync(1000);
    EXPECT_EQ(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024u);
    EXPECT_EQ(PoolAttribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    EXPECT_EQ(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1024u);
  });
}

TEST(DriverPoolsTest, SynchronisationReturnsMemoryAboveTheThreshold) {
  OnDevice({{"SIMCUDA_MEMORY", "128M"}}, [] {
    EXPECT_EQ(cuMemFreeAsync(AllocAsync(kMiB), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 96 * kMiB);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 128 * kMiB);
    SetThreshold(UINT64_MAX);
    EXPECT_EQ(cuMemFreeAsync(AllocAsync(kMiB), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 96 * kMiB);
  });
}

TEST(DriverPoolsTest, BothFreesAcceptBothKindsOfMemory) {
  OnDevice({}, [] {
    CUdeviceptr linear = 0;
    ASSERT_EQ(cuMemAlloc(&linear, 100), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(linear, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(AllocAsync(100)), CUDA_SUCCESS);
    EXPECT_EQ(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  });
}

TEST(DriverPoolsTest, PoolTriesASmallerSegmentBeforeFailing) {
  OnDevice({{"SIMCUDA_MEMORY", "40M"}}, [] {
    AllocAsync(30 * kMiB);
    AllocAsync(8 * kMiB);
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAllocAsync(&address, 8 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST(DriverPoolsTest, DestroyedPoolReturnsItsMemoryWithTheLastFree) {
  OnDevice({{"SIMCUDA_MEMORY", "128M"}}, [] {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&address, kMiB, pool, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 96 * kMiB);
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 96 * kMiB);
    CUdeviceptr other = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&other, kMiB, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 128 * kMiB);
  });
}

}  // namespace
}  // namespace sim
