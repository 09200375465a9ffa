#include "tests/simcuda/math/library_memory.h"

#include "tests/simcuda/driver/entry.h"

namespace sim {
namespace {

constexpr size_t kPage = size_t{2} << 20;  // the granularity of physical memory

CUresult MakeAccessible(CUdeviceptr address, size_t size, CUdevice device) {
  CUmemAccessDesc access{};
  access.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return SIM_DRIVER(cuMemSetAccess, 10020)(address, size, &access, 1);
}

}  // namespace

const Settings& LibrarySettings() {
  static const Settings& settings = *new Settings(Settings::FromEnvironment());
  return settings;
}

bool HandleMemory::Allocate() {
  size_t size = LibrarySettings().handle;
  return size == 0 || cudaMalloc(&address_, size) == cudaSuccess;
}

void* MapMemory(size_t size) {
  size = (size + kPage - 1) / kPage * kPage;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  if (SIM_DRIVER(cuMemCreate, 10020)(&handle, size, &properties, 0) != CUDA_SUCCESS) {
    return nullptr;
  }
  CUdeviceptr address = 0;
  SIM_DRIVER(cuMemAddressReserve, 10020)(&address, size, kPage, 0, 0);
  if (SIM_DRIVER(cuMemMap, 10020)(address, size, 0, handle, 0) != CUDA_SUCCESS ||
      MakeAccessible(address, size, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  return reinterpret_cast<void*>(address);
}

CUresult UnmapMemory(void* pointer) {
  auto address = reinterpret_cast<CUdeviceptr>(pointer);
  size_t size = 0;
  CUresult result = SIM_DRIVER(cuMemGetAddressRange, 3020)(nullptr, &size, address);
  if (result != CUDA_SUCCESS) return result;
  // Releases both the reference retained here and the one of the creation.
  CUmemGenericAllocationHandle handle = 0;
  result = SIM_DRIVER(cuMemRetainAllocationHandle, 11000)(&handle, pointer);
  if (result != CUDA_SUCCESS) return result;
  SIM_DRIVER(cuMemRelease, 10020)(handle);
  SIM_DRIVER(cuMemUnmap, 10020)(address, size);
  SIM_DRIVER(cuMemRelease, 10020)(handle);
  return SIM_DRIVER(cuMemAddressFree, 10020)(address, size);
}

}  // namespace sim
