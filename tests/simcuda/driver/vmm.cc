// Virtual memory management: addresses are reserved, physical memory is created, and mappings
// combine the two.
//
// Physical memory exists until it is neither mapped nor referred to by a handle: cuMemRelease right
// after cuMemMap is legal and frees nothing yet. Handles of released memory are reused.
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "tests/simcuda/simulator.h"

namespace {

using sim::CallGroup;
using sim::Mapping;
using sim::MemoryCall;
using sim::PhysicalMemory;
using sim::Record;
using sim::Simulator;

// The data that cuMemExportToShareableHandle puts behind a file descriptor.
struct Exported {
  pid_t pid;
  CUmemGenericAllocationHandle handle;
  uint64_t size;
  CUmemAllocationProp properties;
};

bool IsDevice(const CUmemAllocationProp& properties) {
  return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUmemGenericAllocationHandle AddPhysical(Simulator& simulator, PhysicalMemory memory) {
  CUmemGenericAllocationHandle handle = simulator.handles.Take(16, 16);
  memory.handles = 1;
  simulator.physical[handle] = std::move(memory);
  return handle;
}

// Returns the physical memory of a live handle, or null.
PhysicalMemory* Lookup(Simulator& simulator, CUmemGenericAllocationHandle handle) {
  auto found = simulator.physical.find(handle);
  return found == simulator.physical.end() || found->second.handles == 0 ? nullptr : &found->second;
}

// Returns whether whole mappings cover [address, address + size) without a gap.
bool Mapped(const Simulator& simulator, uint64_t address, uint64_t size) {
  uint64_t end = address + size;
  for (auto mapping = simulator.mappings.find(address); address < end; ++mapping) {
    if (mapping == simulator.mappings.end() || mapping->first != address) return false;
    address += mapping->second.size;
  }
  return address == end;
}

// Returns the reservation that contains the range, or null.
const sim::Reservation* ReservationOf(const Simulator& simulator, uint64_t address, uint64_t size) {
  auto next = simulator.reservations.upper_bound(address);
  if (next == simulator.reservations.begin()) return nullptr;
  auto& [base, reservation] = *std::prev(next);
  return address + size <= base + reservation.size ? &reservation : nullptr;
}

// Tools see a mapping as device memory.
void PostMapping(Simulator& simulator, sim::MemoryAction action, const Record& record,
                 uint64_t address, uint64_t size) {
  Record mapping = record;
  mapping.address = address;
  simulator.PostMemory(action, mapping,
                       {.size = size, .device = record.device, .context = sim::CurrentContext()});
}

bool Overlaps(const Simulator& simulator, uint64_t address, uint64_t size) {
  auto next = simulator.mappings.lower_bound(address + size);
  if (next == simulator.mappings.begin()) return false;
  auto& [base, mapping] = *std::prev(next);
  return base + mapping.size > address;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = sim::kPage;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
  sim::Arguments arguments(address, size, alignment, wanted, flags);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(__func__, CallGroup::kMap, {.size = size},
                    [&](Simulator& simulator, Record& record) {
                      if (address == nullptr || size == 0 || size % sim::kPage != 0 || flags != 0 ||
                          (alignment & (alignment - 1)) != 0) {
                        return CUDA_ERROR_INVALID_VALUE;
                      }
                      CUcontext context = sim::CurrentContext();
                      record.device = context != nullptr ? context->device : 0;
                      if (alignment < sim::kPage) alignment = sim::kPage;
                      if (wanted % alignment != 0) wanted = 0;
                      sim::Device& device = *simulator.device(record.device);
                      record.address = device.Reserve(size, alignment, wanted);
                      if (record.address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
                      simulator.reservations[record.address] = {size, record.device};
                      *address = record.address;
                      return CUDA_SUCCESS;
                    });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  sim::Arguments arguments(address, size);
  sim::ApiCall call(__func__, arguments.data());
  Record asked{.address = address, .size = size};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    auto found = simulator.reservations.find(address);
    if (found == simulator.reservations.end() || found->second.size != size ||
        Overlaps(simulator, address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.device = found->second.device;
    simulator.device(record.device)->Unreserve(address, size);
    simulator.reservations.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  sim::Arguments arguments(handle, size, properties, flags);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(
      __func__, CallGroup::kMap, {.size = size}, [&](Simulator& simulator, Record& record) {
        if (handle == nullptr || properties == nullptr || size == 0 || size % sim::kPage != 0 ||
            flags != 0) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        // As on a machine that is not part of a fabric, although its GPU supports it.
        if ((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
          return CUDA_ERROR_NOT_PERMITTED;
        bool on_device = IsDevice(*properties);
        if (on_device) {
          record.device = properties->location.id;
          sim::Device* device = simulator.device(record.device);
          if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
          if (!device->budget().Take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
        }
        record.handle = *handle =
            AddPhysical(simulator, {.size = size, .properties = *properties, .charged = on_device});
        return CUDA_SUCCESS;
      });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  sim::Arguments arguments(handle);
  sim::ApiCall call(__func__, arguments.data());
  return MemoryCall(__func__, CallGroup::kMap, {.handle = handle},
                    [&](Simulator& simulator, Record& record) {
                      PhysicalMemory* memory = Lookup(simulator, handle);
                      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
                      record.size = memory->size;
                      record.device = memory->properties.location.id;
                      simulator.Unref(handle, &PhysicalMemory::handles);
                      return CUDA_SUCCESS;
                    });
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  sim::Arguments arguments(address, size, offset, handle, flags);
  sim::ApiCall call(__func__, arguments.data());
  Record asked{.address = address, .size = size, .handle = handle};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    PhysicalMemory* memory = Lookup(simulator, handle);
    if (memory == nullptr || size == 0 || size % sim::kPage != 0 || address % sim::kPage != 0 ||
        offset % sim::kPage != 0 || offset > memory->size || size > memory->size - offset ||
        flags != 0 || ReservationOf(simulator, address, size) == nullptr ||
        Overlaps(simulator, address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.device = memory->properties.location.id;
    ++memory->mappings;
    simulator.mappings[address] = {size, handle, simulator.next_buffer_id++};
    PostMapping(simulator, sim::MemoryAction::kAllocated, record, address, size);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  sim::Arguments arguments(address, size);
  sim::ApiCall call(__func__, arguments.data());
  Record asked{.address = address, .size = size};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (size == 0 || !Mapped(simulator, address, size)) return CUDA_ERROR_INVALID_VALUE;
    auto mapping = simulator.mappings.find(address);
    record.device = simulator.physical.at(mapping->second.handle).properties.location.id;
    while (mapping != simulator.mappings.end() && mapping->first < address + size) {
      PostMapping(simulator, sim::MemoryAction::kFreed, record, mapping->first,
                  mapping->second.size);
      simulator.Unref(mapping->second.handle, &PhysicalMemory::mappings);
      mapping = simulator.mappings.erase(mapping);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* description,
                        size_t count) {
  Record asked{.address = address, .size = size};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (description == nullptr || count == 0 || !Mapped(simulator, address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.device = description[0].location.id;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr) {
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return sim::Simulator::Ready();
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    PhysicalMemory* memory = Lookup(simulator, handle);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = memory->properties;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  Record asked{.address = reinterpret_cast<uint64_t>(pointer)};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    auto next = simulator.mappings.upper_bound(record.address);
    if (next == simulator.mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
    auto& [base, mapping] = *std::prev(next);
    if (record.address - base >= mapping.size) return CUDA_ERROR_INVALID_VALUE;
    ++simulator.physical.at(mapping.handle).handles;
    record.size = mapping.size;
    record.handle = *handle = mapping.handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  return MemoryCall(
      __func__, CallGroup::kMap, {.handle = handle}, [&](Simulator& simulator, Record& record) {
        PhysicalMemory* memory = Lookup(simulator, handle);
        if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        record.size = memory->size;
        Exported exported = {getpid(), handle, memory->size, memory->properties};
        int descriptor = memfd_create("simcuda-memory", MFD_CLOEXEC);
        if (descriptor < 0 || write(descriptor, &exported, sizeof(exported)) != sizeof(exported)) {
          return CUDA_ERROR_OPERATING_SYSTEM;
        }
        *static_cast<int*>(shareable) = descriptor;
        return CUDA_SUCCESS;
      });
}

// Imported memory is a new handle without budget, because its owner accounts for it. In the process
// that exported it, the handle keeps that memory alive.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  return MemoryCall(__func__, CallGroup::kMap, {}, [&](Simulator& simulator, Record& record) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Exported exported;
    int descriptor = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
    if (pread(descriptor, &exported, sizeof(exported), 0) != sizeof(exported)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    record.size = exported.size;
    record.device = exported.properties.location.id;
    PhysicalMemory imported{.size = exported.size, .properties = exported.properties};
    if (exported.pid == getpid()) {
      PhysicalMemory* memory = Lookup(simulator, exported.handle);
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      ++memory->mappings;
      imported.same_as = exported.handle;
    }
    record.handle = *handle = AddPhysical(simulator, std::move(imported));
    return CUDA_SUCCESS;
  });
}

// Returns a file descriptor for a range of device memory, for other drivers.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t size,
                                       CUmemRangeHandleType type, unsigned long long) {
  return sim::Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    sim::Region region;
    if (handle == nullptr || size == 0 || !simulator.FindRange(address, size, &region)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_NOT_SUPPORTED;
    int descriptor = memfd_create("simcuda-range", MFD_CLOEXEC);
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(handle) = descriptor;
    return CUDA_SUCCESS;
  });
}
