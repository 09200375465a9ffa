// Stream-ordered memory and its pools.
#include "tests/simcuda/runtime/runtime.h"

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  sim::Arguments arguments(pointer, size, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return size == 0 ? CUDA_SUCCESS : SIM_DRIVER(cuMemAllocAsync, 11020)(address, size, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  sim::Arguments arguments(pointer, size, pool, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemAllocFromPoolAsync, 11020)(address, size, pool, stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  sim::Arguments arguments(pointer, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::InContext([&] {
    if (pointer == nullptr) return CUDA_SUCCESS;
    return SIM_DRIVER(cuMemFreeAsync, 11020)(sim::Address(pointer), stream);
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return sim::WithDriver(
      [&] { return SIM_DRIVER(cuDeviceGetDefaultMemPool, 11020)(pool, device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuDeviceGetMemPool, 11020)(pool, device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuDeviceSetMemPool, 11020)(device, pool); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolCreate, 11020)(pool,
                                              reinterpret_cast<const CUmemPoolProps*>(properties));
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuMemPoolDestroy, 11020)(pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return sim::WithDriver([&] { return SIM_DRIVER(cuMemPoolTrimTo, 11020)(pool, keep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolSetAttribute, 11020)(
        pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolGetAttribute, 11020)(
        pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
  static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolSetAccess, 11020)(
        pool, reinterpret_cast<const CUmemAccessDesc*>(access), count);
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolGetAccess, 11020)(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                                                 reinterpret_cast<CUmemLocation*>(location));
  });
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type,
                                               unsigned int flags) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolExportToShareableHandle, 11020)(
        handle, pool, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type,
                                                 unsigned int flags) {
  return sim::WithDriver([&] {
    return SIM_DRIVER(cuMemPoolImportFromShareableHandle, 11020)(
        pool, handle, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  return sim::InContext([&] {
    return SIM_DRIVER(cuMemPoolExportPointer, 11020)(
        reinterpret_cast<CUmemPoolPtrExportData*>(data), sim::Address(pointer));
  });
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData* data) {
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemPoolImportPointer, 11020)(
        address, pool, reinterpret_cast<CUmemPoolPtrExportData*>(data));
  });
}
