#include <gtest/gtest.h>

#include <cstring>

#include "tests/simcuda/on_device.h"

namespace sim {
namespace {

CUdeviceptr Alloc(uint64_t size) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
  return address;
}

TEST(DriverMemoryTest, EveryCallBeforeInitIsRefused) {
  InFreshProcess({}, [] {
    CUdeviceptr address = 0;
    int count = 0;
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  });
}

TEST(DriverMemoryTest, ThreadWithoutContextCannotAllocate) {
  OnDevice({}, [] {
    CUdeviceptr address = 0;
    cuCtxSetCurrent(nullptr);
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(DriverMemoryTest, FreedAddressIsReused) {
  OnDevice({}, [] {
    CUdeviceptr first = Alloc(4 * kMiB);
    CUdeviceptr second = Alloc(4 * kMiB);
    EXPECT_EQ(second, first + 4 * kMiB);
    EXPECT_EQ(cuMemFree(first), CUDA_SUCCESS);
    EXPECT_EQ(Alloc(2 * kMiB), first);
  });
}

TEST(DriverMemoryTest, BudgetIsTakenInPagesOfTwoMiB) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr small = Alloc(100);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    CUdeviceptr neighbour = Alloc(100);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    CUdeviceptr large = Alloc(2 * kMiB + 1);
    EXPECT_EQ(FreeMemory(), 58 * kMiB);
    for (CUdeviceptr address : {small, large, neighbour}) {
      EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    }
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
  });
}

TEST(DriverMemoryTest, ExhaustedBudgetIsOutOfMemoryAndRecovers) {
  OnDevice({{"SIMCUDA_MEMORY", "8M"}}, [] {
    CUdeviceptr all = Alloc(8 * kMiB), more = 0;
    EXPECT_EQ(cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(more, 0u);
    EXPECT_EQ(cuMemFree(all), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&more, 8 * kMiB), CUDA_SUCCESS);
  });
}

TEST(DriverMemoryTest, ForeignMemoryAndContextsCountAgainstTheBudget) {
  OnDevice({{"SIMCUDA_MEMORY", "1G"}, {"SIMCUDA_FOREIGN", "300M"}, {"SIMCUDA_CONTEXT", "200M"}},
           [] { EXPECT_EQ(FreeMemory(), 524 * kMiB); });
}

TEST(DriverMemoryTest, UnknownPointerCannotBeFreed) {
  OnDevice({}, [] {
    CUdeviceptr address = Alloc(4096);
    EXPECT_EQ(cuMemFree(address + 512), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverMemoryTest, FreeingNothingSucceeds) {
  OnDevice({}, [] { EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS); });
  InFreshProcess({}, [] { EXPECT_EQ(cuMemFree(0), CUDA_ERROR_NOT_INITIALIZED); });
}

TEST(DriverMemoryTest, ZeroBytesAreRefused) {
  OnDevice({}, [] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverMemoryTest, VariableOfAModuleIsMemoryOfTheDevice) {
  OnDevice({}, [] {
    CUmodule module = nullptr;
    CUdeviceptr variable = 0, base = 0;
    size_t size = 0;
    int value = 7, device = -1;
    ASSERT_EQ(cuModuleLoadData(&module, ""), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetGlobal(&variable, &size, module, "constant"), CUDA_SUCCESS);
    EXPECT_EQ(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, variable + 1),
              CUDA_SUCCESS);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cuMemGetAddressRange(&base, nullptr, variable + 1), CUDA_SUCCESS);
    EXPECT_EQ(base, variable);
    EXPECT_EQ(cuMemcpyHtoD(variable, &value, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(variable), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetAddressRange(&base, nullptr, variable), CUDA_ERROR_NOT_FOUND);
  });
}

TEST(DriverMemoryTest, ManagedMemoryIsReadableByTheHost) {
  OnDevice({}, [] {
    CUdeviceptr address = 0;
    ASSERT_EQ(cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    std::memset(reinterpret_cast<void*>(address), 1, 4096);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  });
}

TEST(DriverMemoryTest, HostMemoryIsFreedOnlyByItsOwnCall) {
  OnDevice({}, [] {
    void* pointer = nullptr;
    ASSERT_EQ(cuMemHostAlloc(&pointer, 100, 0), CUDA_SUCCESS);
    std::memset(pointer, 1, 100);
    EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(pointer)), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemHostUnregister(pointer), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_EQ(cuMemFreeHost(pointer), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeHost(pointer), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverMemoryTest, HostMemoryIsRegisteredOnce) {
  OnDevice({}, [] {
    static char buffer[8192];
    EXPECT_EQ(cuMemHostRegister(buffer, 8192, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostRegister(buffer + 4096, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_EQ(cuMemHostUnregister(buffer), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostUnregister(buffer), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

TEST(DriverMemoryTest, AddressInsideAnAllocationFindsItsRange) {
  OnDevice({}, [] {
    CUdeviceptr address = Alloc(5000), base = 0;
    size_t size = 0;
    EXPECT_EQ(cuMemGetAddressRange(&base, &size, address + 4999), CUDA_SUCCESS);
    EXPECT_EQ(base, address);
    EXPECT_EQ(size, 5000u);
    EXPECT_EQ(cuMemGetAddressRange(&base, &size, address + 5000), CUDA_ERROR_NOT_FOUND);
  });
}

TEST(DriverMemoryTest, PrimaryContextResetFreesItsMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUdeviceptr address = Alloc(32 * kMiB);
    EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverMemoryTest, CopyFromTheDeviceGivesZeros) {
  OnDevice({}, [] {
    int value = 7;
    CUdeviceptr address = Alloc(sizeof(value));
    EXPECT_EQ(cuMemcpyHtoD(address, &value, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&value, address, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(value, 0);
  });
}

TEST(DriverMemoryTest, SmallCopiesAreStoredIfDataIsEnabled) {
  OnDevice({{"SIMCUDA_DATA", "1K"}}, [] {
    int value = 7, copy = 0;
    CUdeviceptr address = Alloc(sizeof(value));
    EXPECT_EQ(cuMemcpyHtoD(address, &value, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&copy, address, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(copy, 7);
  });
}

TEST(DriverMemoryTest, CopyPastTheEndIsRefused) {
  OnDevice({}, [] {
    char buffer[16] = {};
    CUdeviceptr address = Alloc(8);
    EXPECT_EQ(cuMemcpyHtoD(address, buffer, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address, buffer, 8), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverMemoryTest, InjectedFailureHitsTheNthCallOnly) {
  OnDevice({{"SIMCUDA_FAIL", "cuMemAlloc_v2:2,cuMemFree_v2:1=700"}}, [] {
    CUdeviceptr first = Alloc(1), second = 0;
    EXPECT_EQ(cuMemAlloc(&second, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc(&second, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(first), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemFree(first), CUDA_SUCCESS);
  });
}

TEST(DriverMemoryTest, ForkedChildOfAnInitialisedProcessIsRefused) {
  OnDevice({}, [] {
    InFreshProcess({}, [] {
      CUdeviceptr address = 0;
      EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
      EXPECT_EQ(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
    });
    Alloc(1);
  });
}

}  // namespace
}  // namespace sim
