// Allocation, registration and queries about pointers.
#include <algorithm>
#include <iterator>

#include "tests/simcuda/runtime/runtime.h"

namespace {

cudaError_t AllocateHost(void** pointer, size_t size, unsigned int flags, const char* name) {
  if (pointer == nullptr) return sim::Remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  return sim::InContext(
      [&] {
        if (size == 0) return CUDA_SUCCESS;
        return SIM_DRIVER(cuMemHostAlloc, 2020)(pointer, size, flags);
      },
      name);
}

}  // namespace

// An allocation of 0 bytes returns null, and freeing null only creates the context.
cudaError_t cudaMalloc(void** pointer, size_t size) {
  sim::Arguments arguments(pointer, size);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return size == 0 ? CUDA_SUCCESS : SIM_DRIVER(cuMemAlloc, 3020)(address, size);
  });
}

cudaError_t cudaFree(void* pointer) {
  sim::Arguments arguments(pointer);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::InContext([&] {
    if (pointer == nullptr) return CUDA_SUCCESS;
    return SIM_DRIVER(cuMemFree, 3020)(sim::Address(pointer));
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  sim::Arguments arguments(pointer, pitch, width, height);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemAllocPitch, 3020)(address, pitch, width, height, 4);
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  sim::Arguments arguments(pointer, size, flags);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemAllocManaged, 6000)(address, size, flags);
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return sim::InContext([&] { return SIM_DRIVER(cuMemGetInfo, 3020)(free, total); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  sim::Arguments arguments(pointer, size, flags);
  sim::RuntimeCall call(__func__, arguments.data());
  return AllocateHost(pointer, size, flags, __func__);
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  sim::Arguments arguments(pointer, size);
  sim::RuntimeCall call(__func__, arguments.data());
  return AllocateHost(pointer, size, 0, __func__);
}

cudaError_t cudaFreeHost(void* pointer) {
  sim::Arguments arguments(pointer);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::InContext(
      [&] { return pointer == nullptr ? CUDA_SUCCESS : SIM_DRIVER(cuMemFreeHost, 2000)(pointer); });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  return sim::InContext([&] { return SIM_DRIVER(cuMemHostRegister, 6050)(pointer, size, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return sim::InContext([&] { return SIM_DRIVER(cuMemHostUnregister, 4000)(pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned int flags) {
  return sim::StoreAddress(device_pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemHostGetDevicePointer, 3020)(address, pointer, flags);
  });
}

cudaError_t sim::Prefetch(const void* pointer, size_t size, const cudaMemLocation& location,
                          unsigned int flags, cudaStream_t stream) {
  return InContext([&] {
    return SIM_DRIVER(cuMemPrefetchAsync, 12020)(
        Address(pointer), size, reinterpret_cast<const CUmemLocation&>(location), flags, stream);
  });
}

cudaError_t sim::Advise(const void* pointer, size_t size, cudaMemoryAdvise advice,
                        const cudaMemLocation& location) {
  return InContext([&] {
    return SIM_DRIVER(cuMemAdvise, 12020)(Address(pointer), size, static_cast<CUmem_advise>(advice),
                                          reinterpret_cast<const CUmemLocation&>(location));
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return sim::InContext([&] {
    unsigned int type = 0, managed = 0;
    int device = 0;
    void *device_pointer = nullptr, *host_pointer = nullptr;
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* answers[] = {&type, &managed, &device, &device_pointer, &host_pointer};
    CUresult result =
        SIM_DRIVER(cuPointerGetAttributes, 7000)(5, asked, answers, sim::Address(pointer));
    if (result != CUDA_SUCCESS) return result;
#if SIMCUDA_RUNTIME_VERSION >= 13000  // the structure of CUDA 12 ends in front of it
    std::fill(std::begin(attributes->reserved), std::end(attributes->reserved), 0);
#endif
    attributes->device = device;
    attributes->devicePointer = device_pointer;
    attributes->hostPointer = host_pointer;
    attributes->type = managed != 0 ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(type);
    if (type == 0) {  // unknown to CUDA: ordinary host memory
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->hostPointer = const_cast<void*>(pointer);
    }
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
  return sim::InContext([&] {
    return SIM_DRIVER(cuIpcGetMemHandle, 4010)(reinterpret_cast<CUipcMemHandle*>(handle),
                                               sim::Address(pointer));
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuIpcOpenMemHandle, 11000)(
        address, *reinterpret_cast<const CUipcMemHandle*>(&handle), flags);
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return sim::InContext(
      [&] { return SIM_DRIVER(cuIpcCloseMemHandle, 4010)(sim::Address(pointer)); });
}
