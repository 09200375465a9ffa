// Memory and events shared between processes. Imported memory is an address range of the same size
// in the importer; it counts against the owner's budget, and its content is not shared. Opening a
// handle again in the same context adds a reference to the same range.
#include <unistd.h>

#include <cstring>

#include "tests/simcuda/simulator.h"

namespace {

using sim::CallGroup;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

// The content of the 64 opaque bytes of a CUipcMemHandle.
struct SharedMemory {
  pid_t pid;
  int device;
  uint64_t address;
  uint64_t size;
};
static_assert(sizeof(SharedMemory) <= sizeof(CUipcMemHandle));

CUresult Open(const char* name, CUdeviceptr* address, const CUipcMemHandle& handle) {
  return MemoryCall(name, CallGroup::kOther, {}, [&](Simulator& simulator, Record& record) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    SharedMemory shared;
    std::memcpy(&shared, &handle, sizeof(shared));
    sim::Device* device = simulator.device(shared.device);
    if (device == nullptr || shared.size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (shared.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // this process's own memory
    record.size = shared.size;
    record.device = shared.device;
    for (auto& [address_here, known] : simulator.allocations) {
      if (known.kind != MemoryKind::kImported || known.context != context ||
          known.owner != shared.pid || known.owners_address != shared.address) {
        continue;
      }
      ++known.opened;
      *address = record.address = address_here;
      return CUDA_SUCCESS;
    }
    record.address = device->Reserve(sim::RoundUp(shared.size, sim::kPage), sim::kPage, 0);
    if (record.address == 0) return CUDA_ERROR_MAP_FAILED;
    simulator.Add(record.address, {.kind = MemoryKind::kImported,
                                   .size = shared.size,
                                   .device = shared.device,
                                   .context = context,
                                   .owner = shared.pid,
                                   .owners_address = shared.address,
                                   .opened = 1});
    *address = record.address;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return MemoryCall(__func__, CallGroup::kOther, {.address = address},
                    [&](Simulator& simulator, Record& record) {
                      sim::Region region;
                      if (!simulator.Find(address, &region) || region.allocation == nullptr ||
                          region.allocation->kind != MemoryKind::kDevice) {
                        return CUDA_ERROR_INVALID_VALUE;
                      }
                      record.size = region.size;
                      record.device = region.device;
                      SharedMemory shared{getpid(), region.device, region.base, region.size};
                      *handle = {};
                      std::memcpy(handle, &shared, sizeof(shared));
                      return CUDA_SUCCESS;
                    });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  sim::Arguments arguments(address, handle, flags);
  sim::ApiCall call(__func__, arguments.data());
  return Open(__func__, address, handle);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  sim::Arguments arguments(address, handle, flags);
  sim::ApiCall call(__func__, arguments.data());
  return Open(__func__, address, handle);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  sim::Arguments arguments(address);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(
      __func__, CallGroup::kOther, {.address = address}, [&](Simulator& simulator, Record& record) {
        auto found = simulator.allocations.find(address);
        if (found == simulator.allocations.end() || found->second.kind != MemoryKind::kImported) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        record.size = found->second.size;
        record.device = found->second.device;
        if (--found->second.opened == 0) simulator.Remove(found);
        return CUDA_SUCCESS;
      });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (!simulator.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
    *handle = {};
    return CUDA_SUCCESS;
  });
}

// Events of other processes count as finished.
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle) {
  return cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}
