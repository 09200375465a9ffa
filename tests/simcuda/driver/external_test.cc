#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/simcuda/on_device.h"

extern "C" CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                               unsigned int flags);

namespace sim {
namespace {

TEST(DriverExternalTest, ExternalMemoryTakesNoBudgetAndItsBuffersAreFreedAsMemory) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {};
    handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    handle.size = 8 * kMiB;
    CUexternalMemory memory = nullptr;
    ASSERT_EQ(cuImportExternalMemory(&memory, &handle), CUDA_SUCCESS);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {};
    buffer.offset = 4 * kMiB;
    buffer.size = 4 * kMiB;
    CUdeviceptr address = 0;
    EXPECT_EQ(cuExternalMemoryGetMappedBuffer(&address, memory, &buffer), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuDestroyExternalMemory(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    EXPECT_EQ(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(DriverExternalTest, BufferBeyondTheMemoryIsRefused) {
  OnDevice({}, [] {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {};
    handle.size = 4096;
    CUexternalMemory memory = nullptr;
    ASSERT_EQ(cuImportExternalMemory(&memory, &handle), CUDA_SUCCESS);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {};
    buffer.offset = 4096;
    buffer.size = 1;
    CUdeviceptr address = 0;
    EXPECT_EQ(cuExternalMemoryGetMappedBuffer(&address, memory, &buffer), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(DriverExternalTest, GraphicsResourceHasAnAddressWhileItIsMapped) {
  OnDevice({}, [] {
    CUgraphicsResource resource = nullptr;
    CUdeviceptr address = 0;
    size_t size = 0;
    ASSERT_EQ(cuGraphicsGLRegisterBuffer(&resource, 64, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphicsResourceGetMappedPointer(&address, &size, resource), CUDA_ERROR_NOT_MAPPED);
    EXPECT_EQ(cuGraphicsMapResources(1, &resource, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphicsMapResources(1, &resource, nullptr), CUDA_ERROR_ALREADY_MAPPED);
    EXPECT_EQ(cuGraphicsResourceGetMappedPointer(&address, &size, resource), CUDA_SUCCESS);
    EXPECT_EQ(size, 64u << 10);
    EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphicsUnmapResources(1, &resource, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphicsUnmapResources(1, &resource, nullptr), CUDA_ERROR_NOT_MAPPED);
    EXPECT_EQ(cuGraphicsUnregisterResource(resource), CUDA_SUCCESS);
  });
}

TEST(DriverExternalTest, ImportedPoolPointerIsMemoryWithoutBudget) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemoryPool pool = nullptr, imported = nullptr;
    CUdeviceptr address = 0, same = 0;
    CUmemPoolPtrExportData data = {};
    int descriptor = -1;
    ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocFromPoolAsync(&address, kMiB, pool, nullptr), CUDA_SUCCESS);
    auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ASSERT_EQ(cuMemPoolExportToShareableHandle(&descriptor, pool, type, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolExportPointer(&data, address), CUDA_SUCCESS);
    void* shareable = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
    ASSERT_EQ(cuMemPoolImportFromShareableHandle(&imported, shareable, type, 0), CUDA_SUCCESS);
    close(descriptor);
    EXPECT_EQ(cuMemPoolImportPointer(&same, imported, &data), CUDA_SUCCESS);
    EXPECT_NE(same, address);
    EXPECT_EQ(FreeMemory(), 32 * kMiB);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&address, 1, imported, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync(same, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolDestroy(imported), CUDA_SUCCESS);
  });
}

TEST(DriverExternalTest, MulticastKeepsBoundMemoryAndTakesNoBudget) {
  OnDevice({{"SIMCUDA_MEMORY", "64M"}}, [] {
    CUmulticastObjectProp properties = {};
    properties.numDevices = 1;
    properties.size = 2 * kMiB;
    CUmemAllocationProp memory_properties = OnDeviceZero();
    CUmemGenericAllocationHandle multicast = 0, memory = 0;
    ASSERT_EQ(cuMulticastCreate(&multicast, &properties), CUDA_SUCCESS);
    EXPECT_EQ(cuMulticastAddDevice(multicast, 0), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    ASSERT_EQ(cuMemCreate(&memory, 2 * kMiB, &memory_properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMulticastBindMem(multicast, 0, memory, 0, 2 * kMiB, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(memory), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 62 * kMiB);
    EXPECT_EQ(cuMulticastUnbind(multicast, 0, 0, 2 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(FreeMemory(), 64 * kMiB);
    EXPECT_EQ(cuMemRelease(multicast), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace sim
