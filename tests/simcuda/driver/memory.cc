// Linear device memory: cuMemAlloc and its relatives, cuMemFree, cuMemGetInfo.
#include "tests/simcuda/timeline.h"

namespace {

using sim::Allocation;
using sim::CallGroup;
using sim::Device;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

constexpr uint64_t kPitchAlignment = 512;

// Allocates in the current context. Fills the record and, on success, `address`.
CUresult Allocate(Simulator& simulator, Record& record, MemoryKind kind, CUdeviceptr* address) {
  CUcontext context = nullptr;
  if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
  record.device = context->device;
  if (address == nullptr || record.size == 0) return CUDA_ERROR_INVALID_VALUE;
  Device& device = *simulator.device(context->device);
  record.address = device.Allocate(record.size);
  if (record.address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (kind == MemoryKind::kManaged) device.MakeHostAccessible(record.address, record.size);
  simulator.Add(record.address,
                {.kind = kind, .size = record.size, .device = context->device, .context = context});
  simulator.PostMemory(sim::MemoryAction::kAllocated, record,
                       simulator.allocations[record.address]);
  *address = record.address;
  return CUDA_SUCCESS;
}

bool Freeable(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kManaged:
    case MemoryKind::kPool:
    case MemoryKind::kImportedPool:
    case MemoryKind::kExternal:
    case MemoryKind::kGraph:
      return true;
    default:
      return false;
  }
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  sim::Arguments arguments(address, size);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(__func__, CallGroup::kAlloc, {.size = size},
                    [&](Simulator& simulator, Record& record) {
                      return Allocate(simulator, record, MemoryKind::kDevice, address);
                    });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element_size) {
  sim::Arguments arguments(address, pitch, width, height, element_size);
  sim::ApiCall call(__func__, arguments.data());
  uint64_t row = sim::RoundUp(width, kPitchAlignment);
  Record asked{.size = width * height};  // without the padding of rows
  return MemoryCall(__func__, CallGroup::kAlloc, asked, [&](Simulator& simulator, Record& record) {
    if (element_size != 4 && element_size != 8 && element_size != 16) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *pitch = row;
    record.size = row * height;
    CUresult result = Allocate(simulator, record, MemoryKind::kDevice, address);
    if (result != CUDA_SUCCESS) record.size = asked.size;
    return result;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned int flags) {
  sim::Arguments arguments(address, size, flags);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(__func__, CallGroup::kAlloc, {.size = size},
                    [&](Simulator& simulator, Record& record) {
                      if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
                        return CUDA_ERROR_INVALID_VALUE;
                      }
                      return Allocate(simulator, record, MemoryKind::kManaged, address);
                    });
}

// Frees linear, managed and stream-ordered memory, memory of graphs and mapped buffers of external
// memory. Waits for the device first, like the real driver. Freeing null is not logged.
CUresult cuMemFree_v2(CUdeviceptr address) {
  sim::Arguments arguments(address);
  sim::ApiCall call(__func__, arguments.data());
  if (address == 0) return Simulator::Ready();
  return MemoryCall(__func__, CallGroup::kFree, {.address = address},
                    [&](Simulator& simulator, Record& record) {
                      record.done_ns = sim::WaitBeforeFree(simulator, address);
                      auto found = simulator.allocations.find(address);
                      if (found == simulator.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
                      const Allocation& allocation = found->second;
                      if (!Freeable(allocation.kind)) return CUDA_ERROR_INVALID_VALUE;
                      record.size = allocation.size;
                      record.device = allocation.device;
                      record.handle = reinterpret_cast<uint64_t>(allocation.pool);
                      simulator.PostMemory(sim::MemoryAction::kFreed, record, allocation);
                      simulator.Remove(found);
                      simulator.Synchronize();
                      return CUDA_SUCCESS;
                    });
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = sim::CurrentContext();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    sim::Budget& budget = simulator.device(context->device)->budget();
    *free = budget.free();
    *total = budget.total();
    return CUDA_SUCCESS;
  });
}
