// Memory owned by others: external memory (of Vulkan, Direct3D etc.) and graphics resources. It
// counts against its owner's budget, so neither takes budget here. There is no graphics library:
// any number names an OpenGL buffer, and buffer n has n KiB.
#include "tests/simcuda/driver/arrays.h"

namespace {

using sim::Bits;
using sim::Call;
using sim::CallGroup;
using sim::MemoryCall;
using sim::MemoryKind;
using sim::Record;
using sim::Simulator;

// Takes addresses without budget for memory of the current context.
CUresult MapForeign(Simulator& simulator, Record& record, MemoryKind kind, uint64_t size) {
  CUcontext context = nullptr;
  if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
  record.device = context->device;
  record.size = size;
  record.address =
      simulator.device(record.device)->Reserve(sim::RoundUp(size, sim::kPage), sim::kPage, 0);
  if (record.address == 0) return CUDA_ERROR_MAP_FAILED;
  simulator.Add(record.address,
                {.kind = kind, .size = size, .device = record.device, .context = context});
  return CUDA_SUCCESS;
}

// Runs `body` for each resource with a log line for each, until the first failure.
template <typename Body>
CUresult ForEach(const char* name, unsigned int count, CUgraphicsResource* resources,
                 CUstream stream, Body body) {
  if (resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int i = 0; i < count; ++i) {
    Record asked{.handle = Bits(resources[i]), .stream = Bits(stream)};
    CUresult result =
        MemoryCall(name, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
          if (!simulator.graphics.contains(resources[i])) return CUDA_ERROR_INVALID_HANDLE;
          return body(simulator, record, *resources[i]);
        });
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Map(const char* name, unsigned int count, CUgraphicsResource* resources, CUstream stream) {
  return ForEach(name, count, resources, stream, [](Simulator& simulator, Record& record, auto& r) {
    if (r.address != 0) return CUDA_ERROR_ALREADY_MAPPED;
    CUresult result = MapForeign(simulator, record, MemoryKind::kGraphics, r.size);
    if (result == CUDA_SUCCESS) r.address = record.address;
    return result;
  });
}

CUresult Unmap(const char* name, unsigned int count, CUgraphicsResource* resources,
               CUstream stream) {
  return ForEach(name, count, resources, stream, [](Simulator& simulator, Record& record, auto& r) {
    if (r.address == 0) return CUDA_ERROR_NOT_MAPPED;
    record.address = r.address;
    record.size = r.size;
    record.device = r.device;
    simulator.Remove(simulator.allocations.find(r.address));
    r.address = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  if (memory == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Record asked{.size = description->size};
  return MemoryCall(__func__, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    record.device = context->device;
    if (description->size == 0) return CUDA_ERROR_INVALID_VALUE;
    *memory = new CUextMemory_st{context, context->device, description->size};
    simulator.external_memory.insert(*memory);
    record.address = record.handle = Bits(*memory);
    return CUDA_SUCCESS;
  });
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
  if (address == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Record asked{.size = description->size, .handle = Bits(memory)};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (!simulator.external_memory.contains(memory)) return CUDA_ERROR_INVALID_HANDLE;
    if (description->size == 0 || description->offset > memory->size ||
        description->size > memory->size - description->offset) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = MapForeign(simulator, record, MemoryKind::kExternal, description->size);
    if (result == CUDA_SUCCESS) *address = record.address;
    return result;
  });
}

CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray* handle, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* description) {
  if (handle == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Record asked{.handle = Bits(memory)};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (!simulator.external_memory.contains(memory)) return CUDA_ERROR_INVALID_HANDLE;
    auto array = std::make_unique<CUmipmappedArray_st>();
    CUresult result =
        sim::MakeMipmapped(array.get(), description->arrayDesc, description->numLevels);
    if (result != CUDA_SUCCESS) return result;
    array->context = memory->context;
    record.device = array->device = memory->device;
    *handle = array.release();
    simulator.mipmapped_arrays.insert(*handle);
    record.address = record.handle = Bits(*handle);
    return CUDA_SUCCESS;
  });
}

// Its mapped buffers stay mapped until they are freed themselves.
CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  Record asked{.address = Bits(memory), .handle = Bits(memory)};
  return MemoryCall(__func__, CallGroup::kOther, asked, [&](Simulator& simulator, Record& record) {
    if (simulator.external_memory.erase(memory) == 0) return CUDA_ERROR_INVALID_HANDLE;
    record.size = memory->size;
    record.device = memory->device;
    delete memory;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    CUcontext context = nullptr;
    if (CUresult result = simulator.MemoryContext(&context); result != CUDA_SUCCESS) return result;
    if (resource == nullptr || buffer == 0) return CUDA_ERROR_INVALID_VALUE;
    *resource = new CUgraphicsResource_st{context, context->device, uint64_t{buffer} << 10};
    simulator.graphics.insert(*resource);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource) {
  return Call(__func__, CallGroup::kOther, [&](Simulator& simulator) {
    if (simulator.graphics.erase(resource) == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (resource->address != 0) simulator.Remove(simulator.allocations.find(resource->address));
    delete resource;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphicsResourceSetMapFlags(CUgraphicsResource, unsigned int) {
  return Simulator::Ready();
}
CUresult cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource, unsigned int) {
  return Simulator::Ready();
}

CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource* resources,
                                CUstream stream) {
  return Map(__func__, count, resources, stream);
}

CUresult cuGraphicsMapResources_ptsz(unsigned int count, CUgraphicsResource* resources,
                                     CUstream stream) {
  return Map(__func__, count, resources, stream);
}

CUresult cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource* resources,
                                  CUstream stream) {
  return Unmap(__func__, count, resources, stream);
}

CUresult cuGraphicsUnmapResources_ptsz(unsigned int count, CUgraphicsResource* resources,
                                       CUstream stream) {
  return Unmap(__func__, count, resources, stream);
}

CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr* address, size_t* size,
                                               CUgraphicsResource resource) {
  Record asked{.handle = Bits(resource)};
  return MemoryCall(__func__, CallGroup::kMap, asked, [&](Simulator& simulator, Record& record) {
    if (!simulator.graphics.contains(resource)) return CUDA_ERROR_INVALID_HANDLE;
    if (resource->address == 0) return CUDA_ERROR_NOT_MAPPED;
    *address = record.address = resource->address;
    *size = record.size = resource->size;
    record.device = resource->device;
    return CUDA_SUCCESS;
  });
}
