#include <gtest/gtest.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

TEST(DriverArraysTest, ArrayTakesItsBytesUntilItIsDestroyed) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 2, 0};
    CUarray array = nullptr;
    ASSERT_EQ(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 56 * kMiB);
    CUDA_ARRAY_DESCRIPTOR flat = {};
    EXPECT_EQ(cuArrayGetDescriptor(&flat, array), CUDA_SUCCESS);
    EXPECT_EQ(flat.Width, 1024u);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverArraysTest, ArrayBeyondTheBudgetIsOutOfMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "4M"}}, [] {
    CUDA_ARRAY_DESCRIPTOR descriptor = {1024, 1024, CU_AD_FORMAT_FLOAT, 2};
    CUarray array = nullptr;
    EXPECT_EQ(cuArrayCreate(&array, &descriptor), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST(DriverArraysTest, SparseArrayTakesNothing) {
  OnDevice({{"SIMCUDA_MEMORY", "4M"}}, [] {
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
    CUarray array = nullptr;
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = {};
    ASSERT_EQ(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 4 * kMiB);
    EXPECT_EQ(cuArrayGetMemoryRequirements(&requirements, array, 0), CUDA_SUCCESS);
    EXPECT_EQ(requirements.size, 256 * kMiB);
  });
}

TEST(DriverArraysTest, MipmappedArrayTakesTheSumOfItsLevels) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    // 4 MiB + 1 MiB + 256 KiB: three pages
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {1024, 1024, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    ASSERT_EQ(cuMipmappedArrayCreate(&array, &descriptor, 3), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 58 * kMiB);
    EXPECT_EQ(cuMipmappedArrayGetLevel(&level, array, 2), CUDA_SUCCESS);
    CUDA_ARRAY_DESCRIPTOR flat = {};
    EXPECT_EQ(cuArrayGetDescriptor(&flat, level), CUDA_SUCCESS);
    EXPECT_EQ(flat.Width, 256u);
    EXPECT_EQ(cuMipmappedArrayGetLevel(&level, array, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMipmappedArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
  });
}

}  // namespace
}  // namespace sim
