// Pitched memory, arrays, mipmapped arrays and mappings of external memory and graphics resources.
#include "tests/simcuda/runtime/runtime.h"

using sim::InContext;

#pragma GCC visibility push(default)
extern "C" CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                               unsigned int flags);
#pragma GCC visibility pop

namespace {

// The runtime describes an element by the bits of its channels, the driver by format and channel
// count.
bool Convert(const cudaChannelFormatDesc& element, CUDA_ARRAY3D_DESCRIPTOR_v2* array) {
  array->NumChannels = (element.x != 0) + (element.y != 0) + (element.z != 0) + (element.w != 0);
  bool is_signed = element.f == cudaChannelFormatKindSigned;
  if (element.f == cudaChannelFormatKindFloat) {
    array->Format = element.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    return element.x == 16 || element.x == 32;
  }
  switch (element.x) {
    case 8:
      array->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
      return true;
    case 16:
      array->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
      return true;
    case 32:
      array->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
      return true;
    default:
      return false;
  }
}

// Calls `create(descriptor)` with the driver's description of an array.
template <typename Create>
cudaError_t WithDescriptor(const cudaChannelFormatDesc* element, const cudaExtent& extent,
                           unsigned int flags, Create create) {
  CUDA_ARRAY3D_DESCRIPTOR_v2 d = {};
  if (element == nullptr || !Convert(*element, &d)) return sim::Remember(cudaErrorInvalidValue);
  d.Width = extent.width;
  d.Height = extent.height;
  d.Depth = extent.depth;
  d.Flags = flags;  // the two enumerations agree
  return InContext([&] { return create(d); });
}

CUarray* Driver(cudaArray_t* array) { return reinterpret_cast<CUarray*>(array); }
CUmipmappedArray* Driver(cudaMipmappedArray_t* array) {
  return reinterpret_cast<CUmipmappedArray*>(array);
}
CUexternalMemory Driver(cudaExternalMemory_t memory) {
  return reinterpret_cast<CUexternalMemory>(memory);
}

}  // namespace

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return sim::Remember(cudaErrorInvalidValue);
  *pitched = {nullptr, 0, extent.width, extent.height};
  return sim::StoreAddress(&pitched->ptr, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuMemAllocPitch, 3020)(address, &pitched->pitch, extent.width,
                                             extent.height * extent.depth, 4);
  });
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* element, size_t width,
                            size_t height, unsigned int flags) {
  return WithDescriptor(element, {width, height, 0}, flags, [&](auto& d) {
    if (flags != 0) return SIM_DRIVER(cuArray3DCreate, 3020)(Driver(array), &d);
    CUDA_ARRAY_DESCRIPTOR flat = {d.Width, d.Height, d.Format, d.NumChannels};
    return SIM_DRIVER(cuArrayCreate, 3020)(Driver(array), &flat);
  });
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* element,
                              cudaExtent extent, unsigned int flags) {
  return WithDescriptor(element, extent, flags, [&](auto& d) {
    return SIM_DRIVER(cuArray3DCreate, 3020)(Driver(array), &d);
  });
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* element, cudaExtent extent,
                                     unsigned int levels, unsigned int flags) {
  return WithDescriptor(element, extent, flags, [&](auto& d) {
    return SIM_DRIVER(cuMipmappedArrayCreate, 5000)(Driver(array), &d, levels);
  });
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                       unsigned int index) {
  return InContext([&] {
    auto driver_array = reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
    return SIM_DRIVER(cuMipmappedArrayGetLevel, 5000)(Driver(level), driver_array, index);
  });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return InContext([&] {
    if (array == nullptr) return CUDA_SUCCESS;
    return SIM_DRIVER(cuArrayDestroy, 2000)(reinterpret_cast<CUarray>(array));
  });
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return InContext([&] {
    if (array == nullptr) return CUDA_SUCCESS;
    return SIM_DRIVER(cuMipmappedArrayDestroy, 5000)(reinterpret_cast<CUmipmappedArray>(array));
  });
}

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t* memory,
                                     const cudaExternalMemoryHandleDesc* description) {
  if (memory == nullptr || description == nullptr) return sim::Remember(cudaErrorInvalidValue);
  return InContext([&] {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = {};
    d.type = static_cast<CUexternalMemoryHandleType>(description->type);
    d.handle.fd = description->handle.fd;
    d.size = description->size;
    d.flags = description->flags;
    return SIM_DRIVER(cuImportExternalMemory, 10000)(reinterpret_cast<CUexternalMemory*>(memory),
                                                     &d);
  });
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void** pointer, cudaExternalMemory_t memory,
                                              const cudaExternalMemoryBufferDesc* description) {
  if (description == nullptr) return sim::Remember(cudaErrorInvalidValue);
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC d = {description->offset, description->size,
                                          description->flags};
    return SIM_DRIVER(cuExternalMemoryGetMappedBuffer, 10000)(address, Driver(memory), &d);
  });
}

cudaError_t cudaExternalMemoryGetMappedMipmappedArray(
    cudaMipmappedArray_t* array, cudaExternalMemory_t memory,
    const cudaExternalMemoryMipmappedArrayDesc* description) {
  if (description == nullptr) return sim::Remember(cudaErrorInvalidValue);
  return WithDescriptor(&description->formatDesc, description->extent, description->flags,
                        [&](auto& array_d) {
                          CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC d = {};
                          d.offset = description->offset;
                          d.arrayDesc = array_d;
                          d.numLevels = description->numLevels;
                          return SIM_DRIVER(cuExternalMemoryGetMappedMipmappedArray, 10000)(
                              Driver(array), Driver(memory), &d);
                        });
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory) {
  return InContext([&] { return SIM_DRIVER(cuDestroyExternalMemory, 10000)(Driver(memory)); });
}

cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t* resource, unsigned int buffer,
                                         unsigned int flags) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphicsGLRegisterBuffer, 3000)(
        reinterpret_cast<CUgraphicsResource*>(resource), buffer, flags);
  });
}

cudaError_t cudaGraphicsUnregisterResource(cudaGraphicsResource_t resource) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphicsUnregisterResource,
                      3000)(reinterpret_cast<CUgraphicsResource>(resource));
  });
}

cudaError_t cudaGraphicsResourceSetMapFlags(cudaGraphicsResource_t resource, unsigned int flags) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphicsResourceSetMapFlags, 6050)(
        reinterpret_cast<CUgraphicsResource>(resource), flags);
  });
}

cudaError_t cudaGraphicsMapResources(int count, cudaGraphicsResource_t* resources,
                                     cudaStream_t stream) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphicsMapResources, 3000)(
        count, reinterpret_cast<CUgraphicsResource*>(resources), stream);
  });
}

cudaError_t cudaGraphicsUnmapResources(int count, cudaGraphicsResource_t* resources,
                                       cudaStream_t stream) {
  return InContext([&] {
    return SIM_DRIVER(cuGraphicsUnmapResources, 3000)(
        count, reinterpret_cast<CUgraphicsResource*>(resources), stream);
  });
}

cudaError_t cudaGraphicsResourceGetMappedPointer(void** pointer, size_t* size,
                                                 cudaGraphicsResource_t resource) {
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER(cuGraphicsResourceGetMappedPointer, 3020)(
        address, size, reinterpret_cast<CUgraphicsResource>(resource));
  });
}
