// Stream-ordered memory. Kernels do nothing here, so memory freed on a stream can be reused at
// once.
#include "tests/simcuda/timeline.h"

namespace {

using sim::CallGroup;
using sim::Device;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

using sim::Bits;
bool Known(const Simulator& simulator, CUmemoryPool pool) {
  if (pool == nullptr) return false;
  if (simulator.pools.contains(pool)) return true;
  for (auto& device : simulator.devices()) {
    if (&device->default_pool() == pool) return true;
  }
  return false;
}

// Null means the current pool of the current device.
CUresult Allocate(const char* name, CUdeviceptr* address, size_t size, CUmemoryPool pool,
                  CUstream stream) {
  Record asked{.size = size, .handle = Bits(pool), .stream = Bits(stream)};
  return MemoryCall(name, CallGroup::kAlloc, asked, [&](Simulator& simulator, Record& record) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    record.device = context->device;
    if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (pool == nullptr) pool = simulator.device(context->device)->current_pool;
    if (!Known(simulator, pool) || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    record.handle = Bits(pool);
    record.device = pool->device()->ordinal();
    record.address = pool->Allocate(size);
    if (record.address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    simulator.Add(record.address, {.kind = MemoryKind::kPool,
                                   .size = size,
                                   .device = record.device,
                                   .context = context,
                                   .pool = pool});
    record.done_ns = sim::Queue(simulator, context, stream, 0).end_ns;
    simulator.PostMemory(sim::MemoryAction::kAllocated, record,
                         simulator.allocations[record.address], true);
    *address = record.address;
    return CUDA_SUCCESS;
  });
}

bool FreedOnStreams(MemoryKind kind) {
  return kind == MemoryKind::kPool || kind == MemoryKind::kDevice ||
         kind == MemoryKind::kImportedPool || kind == MemoryKind::kGraph;
}

// Accepts memory of pools and graphs and, like the real driver, of cuMemAlloc.
CUresult Free(const char* name, CUdeviceptr address, CUstream stream) {
  Record asked{.address = address, .stream = Bits(stream)};
  return MemoryCall(name, CallGroup::kFree, asked, [&](Simulator& simulator, Record& record) {
    auto found = simulator.allocations.find(address);
    if (found == simulator.allocations.end() || !FreedOnStreams(found->second.kind)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.size = found->second.size;
    record.device = found->second.device;
    record.handle = Bits(found->second.pool);
    record.done_ns = sim::Queue(simulator, sim::CurrentContext(), stream, 0).end_ns;
    simulator.PostMemory(sim::MemoryAction::kFreed, record, found->second, true);
    simulator.Remove(found);
    return CUDA_SUCCESS;
  });
}

void TellPool(sim::PoolAction action, CUmemoryPool pool, uint64_t keep) {
  sim::Post({.kind = sim::NoticeKind::kPool,
             .device = pool->device()->ordinal(),
             .end_ns = sim::Now(),
             .pool_action = action,
             .size = keep,
             .pool = sim::StateOf(pool)});
}

template <typename Body>
CUresult WithPool(const char* name, CUmemoryPool pool, Body body) {
  return MemoryCall(name, CallGroup::kOther, {.handle = Bits(pool)},
                    [&](Simulator& simulator, Record& record) {
                      if (!Known(simulator, pool)) return CUDA_ERROR_INVALID_VALUE;
                      record.device = pool->device()->ordinal();
                      return body(simulator, record);
                    });
}

// For the forms of CUDA 13, which take a location. Pools of host and managed memory are not
// simulated.
CUresult DeviceOf(const CUmemLocation* location, CUmemAllocationType type, CUdevice* device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool simulated =
      location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
  *device = location->id;
  return simulated ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  sim::Arguments arguments(address, size, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Allocate(__func__, address, size, nullptr, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t size, CUstream stream) {
  sim::Arguments arguments(address, size, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Allocate(__func__, address, size, nullptr, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool,
                                 CUstream stream) {
  sim::Arguments arguments(address, size, pool, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Allocate(__func__, address, size, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t size, CUmemoryPool pool,
                                      CUstream stream) {
  sim::Arguments arguments(address, size, pool, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Allocate(__func__, address, size, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  sim::Arguments arguments(address, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Free(__func__, address, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  sim::Arguments arguments(address, stream);
  sim::ApiCall call(__func__, arguments.data());
  return Free(__func__, address, stream);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return MemoryCall(__func__, CallGroup::kOther, {}, [&](Simulator& simulator, Record& record) {
    if (pool == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    record.device = properties->location.id;
    Device* device = simulator.device(record.device);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pool = new sim::Pool(device, properties->maxSize);
    simulator.pools.insert(*pool);
    record.handle = Bits(*pool);
    TellPool(sim::PoolAction::kCreated, *pool, 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return WithPool(__func__, pool, [&](Simulator& simulator, Record&) {
    if (simulator.pools.erase(pool) == 0) return CUDA_ERROR_INVALID_VALUE;  // a default pool
    for (auto& device : simulator.devices()) {
      if (device->current_pool == pool) device->current_pool = &device->default_pool();
    }
    TellPool(sim::PoolAction::kDestroyed, pool, 0);
    if (pool->Destroy()) delete pool;  // otherwise deleted with the last of its memory
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return WithPool(__func__, pool, [&](Simulator&, Record& record) {
    record.size = keep;
    pool->TrimTo(keep);
    TellPool(sim::PoolAction::kTrimmed, pool, keep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return WithPool(__func__, pool, [&](Simulator&, Record&) {
    switch (attribute) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->release_threshold = *static_cast<cuuint64_t*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        pool->reuse_follow_event_dependencies = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        pool->reuse_allow_opportunistic = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse_allow_internal_dependencies = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        pool->ResetReservedHigh();
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        pool->ResetUsedHigh();
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (!Known(simulator, pool)) return CUDA_ERROR_INVALID_VALUE;
    auto bytes = [&](uint64_t number) {
      *static_cast<cuuint64_t*>(value) = number;
      return CUDA_SUCCESS;
    };
    auto flag = [&](int number) {
      *static_cast<int*>(value) = number;
      return CUDA_SUCCESS;
    };
    switch (attribute) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return bytes(pool->release_threshold);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return bytes(pool->reserved());
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return bytes(pool->reserved_high());
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return bytes(pool->used());
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return bytes(pool->used_high());
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return flag(pool->reuse_follow_event_dependencies);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return flag(pool->reuse_allow_opportunistic);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return flag(pool->reuse_allow_internal_dependencies);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc*, size_t) {
  return WithPool(__func__, pool, [](Simulator&, Record&) { return CUDA_SUCCESS; });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pool = &device->default_pool();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pool = device->current_pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
  return WithPool(__func__, pool, [&](Simulator& simulator, Record& record) {
    record.device = ordinal;
    Device* device = simulator.device(ordinal);
    if (device == nullptr || pool->device() != device) return CUDA_ERROR_INVALID_DEVICE;
    device->current_pool = pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation*) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (flags == nullptr || !Known(simulator, pool)) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  CUdevice device = 0;
  CUresult result = DeviceOf(location, type, &device);
  return result == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, device) : result;
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  CUdevice device = 0;
  CUresult result = DeviceOf(location, type, &device);
  return result == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, device) : result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  CUdevice device = 0;
  CUresult result = DeviceOf(location, type, &device);
  return result == CUDA_SUCCESS ? cuDeviceSetMemPool(device, pool) : result;
}
