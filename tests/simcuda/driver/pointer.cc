// Queries about an address: its range and its attributes.
#include "tests/simcuda/simulator.h"

namespace {

using sim::Call;
using sim::CallGroup;
using sim::MemoryKind;
using sim::Region;
using sim::Simulator;

template <typename T>
CUresult Store(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult Attribute(Simulator& simulator, const Region& region, uint64_t address,
                   CUpointer_attribute attribute, void* data) {
  const sim::Allocation* allocation = region.allocation;
  bool managed = allocation != nullptr && allocation->kind == MemoryKind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Store<CUcontext>(data, allocation != nullptr
                                        ? allocation->context
                                        : &simulator.device(region.device)->primary());
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Store<unsigned int>(data,
                                 region.device_memory ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Store<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (region.device_memory && !managed) return CUDA_ERROR_INVALID_VALUE;
      return Store<void*>(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Store<unsigned int>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Store<unsigned long long>(data, region.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Store<unsigned int>(data, managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Store<int>(data, region.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Store<CUdeviceptr>(data, region.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Store<size_t>(data, region.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Store<unsigned int>(data, 1);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Store<unsigned int>(data,
                                 allocation != nullptr && allocation->kind == MemoryKind::kDevice);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Store<unsigned int>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Store<unsigned int>(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Store<CUmemoryPool>(data, allocation != nullptr ? allocation->pool : nullptr);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Region region;
    if (!simulator.Find(address, &region) || !region.device_memory) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = region.base;
    if (size != nullptr) *size = region.size;
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Region region;
    if (data == nullptr || !simulator.Find(address, &region)) return CUDA_ERROR_INVALID_VALUE;
    return Attribute(simulator, region, address, attribute, data);
  });
}

// Unlike cuPointerGetAttribute, succeeds for unknown addresses, with empty values.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Region region;
    bool found = simulator.Find(address, &region);
    for (unsigned int i = 0; i < count; ++i) {
      if (found && Attribute(simulator, region, address, attributes[i], data[i]) == CUDA_SUCCESS) {
        continue;
      }
      switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
          Store<uint64_t>(data[i], 0);
          break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
          Store<int>(data[i], -2);
          break;
        default:
          Store<unsigned int>(data[i], 0);
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr address) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    Region region;
    return simulator.Find(address, &region) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
