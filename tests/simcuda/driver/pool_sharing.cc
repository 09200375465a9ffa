// Pools and their memory shared between processes: a pool is exported as a file descriptor, an
// allocation as 64 opaque bytes. As with IPC handles, the importer gets addresses without budget.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/simcuda/simulator.h"

namespace {

using sim::Bits;
using sim::CallGroup;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

// The content of the file behind an exported pool.
struct SharedPool {
  char magic[16];
  int device;
};
constexpr char kMagic[16] = "simcuda-pool-01";

// The content of CUmemPoolPtrExportData.
struct SharedPointer {
  int device;
  uint64_t size;
};
static_assert(sizeof(SharedPointer) <= sizeof(CUmemPoolPtrExportData));

}  // namespace

CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long) {
  Record asked{.handle = Bits(pool)};
  return MemoryCall(__func__, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    if (handle == nullptr || !simulator.pools.contains(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    record.device = pool->device()->ordinal();
    SharedPool shared = {};
    std::memcpy(shared.magic, kMagic, sizeof(kMagic));
    shared.device = record.device;
    int descriptor = memfd_create("simcuda-pool", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, &shared, sizeof(shared)) != sizeof(shared)) {
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *static_cast<int*>(handle) = descriptor;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle,
                                            CUmemAllocationHandleType type, unsigned long long) {
  return MemoryCall(__func__, CallGroup::kOther, {}, [&](Simulator& simulator, Record& record) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    SharedPool shared;
    int descriptor = static_cast<int>(reinterpret_cast<intptr_t>(handle));
    if (pread(descriptor, &shared, sizeof(shared), 0) != sizeof(shared) ||
        std::memcmp(shared.magic, kMagic, sizeof(kMagic)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    sim::Device* device = simulator.device(shared.device);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pool = new sim::Pool(device);
    (*pool)->imported = true;
    simulator.pools.insert(*pool);
    record.handle = Bits(*pool);
    record.device = shared.device;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  Record asked{.address = address};
  return MemoryCall(__func__, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    auto found = simulator.allocations.find(address);
    if (data == nullptr || found == simulator.allocations.end() ||
        found->second.kind != MemoryKind::kPool) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.size = found->second.size;
    record.handle = Bits(found->second.pool);
    record.device = found->second.device;
    SharedPointer shared{record.device, record.size};
    *data = {};
    std::memcpy(data, &shared, sizeof(shared));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool,
                                CUmemPoolPtrExportData* data) {
  Record asked{.handle = Bits(pool)};
  return MemoryCall(__func__, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    if (address == nullptr || data == nullptr || !simulator.pools.contains(pool) ||
        !pool->imported) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    SharedPointer shared;
    std::memcpy(&shared, data, sizeof(shared));
    if (shared.size == 0 || shared.device != pool->device()->ordinal()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.size = shared.size;
    record.device = shared.device;
    record.address = pool->device()->Reserve(sim::RoundUp(shared.size, sim::kPage), sim::kPage, 0);
    if (record.address == 0) return CUDA_ERROR_MAP_FAILED;
    simulator.Add(record.address, {.kind = MemoryKind::kImportedPool,
                                   .size = shared.size,
                                   .device = shared.device,
                                   .context = context});
    *address = record.address;
    return CUDA_SUCCESS;
  });
}
