// Multicast objects: handles that are mapped like physical memory but have no memory of their own,
// only what is bound to them. They take no budget.
#include "tests/simcuda/simulator.h"

namespace {

using sim::CallGroup;
using sim::MemoryCall;
using sim::PhysicalMemory;
using sim::Record;
using sim::Simulator;

PhysicalMemory* Multicast(Simulator& simulator, CUmemGenericAllocationHandle handle) {
  auto found = simulator.physical.find(handle);
  bool live = found != simulator.physical.end() && found->second.handles > 0;
  return live && found->second.multicast ? &found->second : nullptr;
}

// Keeps `memory` alive while it is bound at `offset` of a multicast object.
CUresult Bind(Simulator& simulator, CUmemGenericAllocationHandle handle, uint64_t offset,
              CUmemGenericAllocationHandle memory, uint64_t size) {
  PhysicalMemory* multicast = Multicast(simulator, handle);
  auto found = simulator.physical.find(memory);
  if (multicast == nullptr || found == simulator.physical.end() || found->second.multicast ||
      size == 0 || offset > multicast->size || size > multicast->size - offset ||
      multicast->bound.contains(offset)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++found->second.mappings;
  multicast->bound[offset] = memory;
  return CUDA_SUCCESS;
}

CUresult BindMemory(const char* name, CUmemGenericAllocationHandle handle, uint64_t offset,
                    CUmemGenericAllocationHandle memory, uint64_t size) {
  return sim::Call(name, CallGroup::kMap, [&](Simulator& simulator) {
    return Bind(simulator, handle, offset, memory, size);
  });
}

CUresult BindAddress(const char* name, CUmemGenericAllocationHandle handle, uint64_t offset,
                     CUdeviceptr address, uint64_t size) {
  return sim::Call(name, CallGroup::kMap, [&](Simulator& simulator) {
    auto mapping = simulator.mappings.find(address);
    if (mapping == simulator.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    return Bind(simulator, handle, offset, mapping->second.handle, size);
  });
}

}  // namespace

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* properties) {
  if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Record asked{.size = properties->size};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (properties->size == 0 || properties->size % sim::kPage != 0 ||
        properties->numDevices == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.handle = *handle = simulator.handles.Take(16, 16);
    simulator.physical[*handle] = {.size = properties->size, .handles = 1, .multicast = true};
    return CUDA_SUCCESS;
  });
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  return sim::Call(__func__, CallGroup::kMap, [&](Simulator& simulator) {
    if (simulator.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return Multicast(simulator, handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t, size_t size,
                            unsigned long long) {
  return BindMemory(__func__, handle, offset, memory, size);
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, CUdevice, size_t offset,
                               CUmemGenericAllocationHandle memory, size_t, size_t size,
                               unsigned long long) {
  return BindMemory(__func__, handle, offset, memory, size);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
                             CUdeviceptr address, size_t size, unsigned long long) {
  return BindAddress(__func__, handle, offset, address, size);
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle handle, CUdevice, size_t offset,
                                CUdeviceptr address, size_t size, unsigned long long) {
  return BindAddress(__func__, handle, offset, address, size);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice, size_t offset, size_t) {
  return sim::Call(__func__, CallGroup::kMap, [&](Simulator& simulator) {
    PhysicalMemory* multicast = Multicast(simulator, handle);
    if (multicast == nullptr || !multicast->bound.contains(offset)) return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle memory = multicast->bound[offset];
    multicast->bound.erase(offset);
    simulator.Unref(memory, &PhysicalMemory::mappings);
    return CUDA_SUCCESS;
  });
}

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp*,
                                   CUmulticastGranularity_flags) {
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = sim::kPage;
  return Simulator::Ready();
}
