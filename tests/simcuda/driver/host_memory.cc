// Pinned host memory, allocated by the driver or registered with it. It takes RAM, not budget.
#include <sys/mman.h>

#include "tests/simcuda/timeline.h"

namespace {

using sim::CallGroup;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

CUresult Allocate(Simulator& simulator, Record& record, void** pointer) {
  CUcontext context = nullptr;
  if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
  record.device = context->device;
  if (pointer == nullptr || record.size == 0) return CUDA_ERROR_INVALID_VALUE;
  void* memory = mmap(nullptr, record.size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  record.address = reinterpret_cast<uint64_t>(memory);
  simulator.Add(record.address, {.kind = MemoryKind::kHost,
                                 .size = record.size,
                                 .device = context->device,
                                 .context = context});
  simulator.PostMemory(sim::MemoryAction::kAllocated, record,
                       simulator.allocations[record.address]);
  *pointer = memory;
  return CUDA_SUCCESS;
}

CUresult Register(const char* name, void* pointer, size_t size) {
  Record asked{.address = reinterpret_cast<uint64_t>(pointer), .size = size};
  return MemoryCall(name, CallGroup::kHost, asked, [&](Simulator& simulator, Record& record) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    record.device = context->device;
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    sim::Region region;
    auto next = simulator.allocations.lower_bound(record.address);
    bool reaches_next = next != simulator.allocations.end() && next->first - record.address < size;
    if (reaches_next || simulator.Find(record.address, &region)) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    simulator.Add(record.address, {.kind = MemoryKind::kRegistered,
                                   .size = size,
                                   .device = context->device,
                                   .context = context});
    simulator.PostMemory(sim::MemoryAction::kAllocated, record,
                         simulator.allocations[record.address]);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
  sim::Arguments arguments(pointer, size, flags);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(
      __func__, CallGroup::kHost, {.size = size},
      [&](Simulator& simulator, Record& record) { return Allocate(simulator, record, pointer); });
}

CUresult cuMemAllocHost_v2(void** pointer, size_t size) {
  sim::Arguments arguments(pointer, size);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(
      __func__, CallGroup::kHost, {.size = size},
      [&](Simulator& simulator, Record& record) { return Allocate(simulator, record, pointer); });
}

CUresult cuMemAllocHost(void** pointer, unsigned int size) {
  return MemoryCall(
      __func__, CallGroup::kHost, {.size = size},
      [&](Simulator& simulator, Record& record) { return Allocate(simulator, record, pointer); });
}

CUresult cuMemFreeHost(void* pointer) {
  sim::Arguments arguments(pointer);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(
      __func__, CallGroup::kHost, {.address = reinterpret_cast<uint64_t>(pointer)},
      [&](Simulator& simulator, Record& record) {
        record.done_ns = sim::WaitBeforeFree(simulator, record.address);
        auto found = simulator.allocations.find(record.address);
        if (found == simulator.allocations.end() || found->second.kind != MemoryKind::kHost) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        record.size = found->second.size;
        record.device = found->second.device;
        simulator.PostMemory(sim::MemoryAction::kFreed, record, found->second);
        simulator.Remove(found);
        return CUDA_SUCCESS;
      });
}

CUresult cuMemHostRegister(void* pointer, size_t size, unsigned int) {
  return Register(__func__, pointer, size);
}

CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int) {
  return Register(__func__, pointer, size);
}

CUresult cuMemHostUnregister(void* pointer) {
  return MemoryCall(
      __func__, CallGroup::kHost, {.address = reinterpret_cast<uint64_t>(pointer)},
      [&](Simulator& simulator, Record& record) {
        auto found = simulator.allocations.find(record.address);
        if (found == simulator.allocations.end() || found->second.kind != MemoryKind::kRegistered) {
          return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        }
        record.size = found->second.size;
        record.device = found->second.device;
        simulator.PostMemory(sim::MemoryAction::kFreed, record, found->second);
        simulator.Remove(found);
        return CUDA_SUCCESS;
      });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned int) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    sim::Region region;
    *address = reinterpret_cast<CUdeviceptr>(pointer);
    if (!simulator.Find(*address, &region) || region.device_memory) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    sim::Region region;
    if (!simulator.Find(reinterpret_cast<uint64_t>(pointer), &region) || region.device_memory) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}
