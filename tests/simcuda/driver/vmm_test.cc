#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

CUdeviceptr Reserve(uint64_t size) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, size, 0, 0, 0), CUDA_SUCCESS);
  return address;
}

CUmemGenericAllocationHandle Create(uint64_t size) {
  CUmemAllocationProp properties = OnDeviceZero();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, size, &properties, 0), CUDA_SUCCESS);
  return handle;
}

TEST(DriverVmmTest, ReservationTakesNoMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr address = Reserve(1024 * kMiB);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuMemAddressFree(address, 512 * kMiB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(address, 1024 * kMiB), CUDA_SUCCESS);
  });
}

TEST(DriverVmmTest, MemoryExistsUntilReleasedAndUnmapped) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr address = Reserve(4 * kMiB);
    CUmemGenericAllocationHandle handle = Create(4 * kMiB);
    EXPECT_EQ(FreeMemory(), 60 * kMiB);
    EXPECT_EQ(cuMemMap(address, 4 * kMiB, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 60 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 4 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
  });
}

TEST(DriverVmmTest, CreateBeyondTheBudgetIsOutOfMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "8M"}}, [] {
    CUmemAllocationProp properties = OnDeviceZero();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, 10 * kMiB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemCreate(&handle, 3 * kMiB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverVmmTest, MemoryThatOtherMachinesCanMapIsNotPermitted) {
  OnDevice({}, [] {
    CUmemAllocationProp properties = OnDeviceZero();
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_ERROR_NOT_PERMITTED);
  });
}

TEST(DriverVmmTest, MappingNeedsAReservationAndFreeSpaceInIt) {
  OnDevice({}, [] {
    CUdeviceptr address = Reserve(4 * kMiB);
    CUmemGenericAllocationHandle handle = Create(2 * kMiB);
    EXPECT_EQ(cuMemMap(address + 4 * kMiB, 2 * kMiB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(address, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(address, 2 * kMiB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(address, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverVmmTest, OneUnmapRemovesSeveralWholeMappings) {
  OnDevice({}, [] {
    CUdeviceptr address = Reserve(6 * kMiB);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(cuMemMap(address + 2 * i * kMiB, 2 * kMiB, 0, Create(2 * kMiB), 0), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuMemUnmap(address, 3 * kMiB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 4 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(cuMemUnmap(address, 2 * kMiB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address + 4 * kMiB, 2 * kMiB), CUDA_SUCCESS);
  });
}

TEST(DriverVmmTest, CopyMayCrossAdjacentMappings) {
  OnDevice({}, [] {
    static char buffer[4096];
    CUdeviceptr address = Reserve(6 * kMiB);
    ASSERT_EQ(cuMemMap(address, 2 * kMiB, 0, Create(2 * kMiB), 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(address + 2 * kMiB, 2 * kMiB, 0, Create(2 * kMiB), 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address + 2 * kMiB - 2048, buffer, 4096), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address + 4 * kMiB - 2048, buffer, 4096), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverVmmTest, RetainedHandleKeepsMemoryAlive) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr address = Reserve(2 * kMiB);
    CUmemGenericAllocationHandle handle = Create(2 * kMiB), again = 0;
    ASSERT_EQ(cuMemMap(address, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address + 1)),
              CUDA_SUCCESS);
    EXPECT_EQ(again, handle);
    EXPECT_EQ(cuMemUnmap(address, 2 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
  });
}

TEST(DriverVmmTest, ReleasedHandleIsReused) {
  OnDevice({}, [] {
    CUmemGenericAllocationHandle first = Create(2 * kMiB);
    EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
    EXPECT_EQ(Create(2 * kMiB), first);
  });
}

TEST(DriverVmmTest, ImportedHandleKeepsTheExportedMemoryAlive) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUmemGenericAllocationHandle handle = Create(2 * kMiB), imported = 0;
    int descriptor = -1;
    ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    void* shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, shareable,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    EXPECT_NE(imported, handle);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    close(descriptor);
  });
}

}  // namespace
}  // namespace sim
