// CUDA arrays and mipmapped arrays. A handle is an object, not an address; the memory behind it
// takes the size given by its descriptor from the device's budget. Sparse arrays and those with
// deferred mapping have no memory until cuMemMapArrayAsync provides it, so their size is 0.
#include "tests/simcuda/driver/arrays.h"

#include <algorithm>

namespace {

using sim::Call;
using sim::CallGroup;
using sim::MemoryCall;
using sim::Record;
using sim::Simulator;

constexpr unsigned int kNoMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

// Returns the bytes of one channel; 0 for formats that are not simulated.
uint64_t ChannelBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

bool Valid(const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  bool channels = d.NumChannels == 1 || d.NumChannels == 2 || d.NumChannels == 4;
  bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  bool shape = d.Width > 0 && (d.Height > 0 || d.Depth == 0 || layered);
  return channels && shape && ChannelBytes(d.Format) > 0;
}

// Returns the descriptor of one level of a mipmapped array. The number of layers is not halved.
CUDA_ARRAY3D_DESCRIPTOR_v2 Level(CUDA_ARRAY3D_DESCRIPTOR_v2 d, unsigned int level) {
  auto halved = [&](size_t extent) {
    return extent == 0 ? 0 : std::max<size_t>(extent >> level, 1);
  };
  d.Width = halved(d.Width);
  d.Height = halved(d.Height);
  if ((d.Flags & CUDA_ARRAY3D_LAYERED) == 0) d.Depth = halved(d.Depth);
  return d;
}

uint64_t BytesOfLevels(const CUDA_ARRAY3D_DESCRIPTOR_v2& d, unsigned int levels) {
  uint64_t bytes = 0;
  for (unsigned int level = 0; level < levels; ++level) bytes += sim::ArrayBytes(Level(d, level));
  return bytes;
}

// Takes budget and addresses for an array of the current context; `record` has the size.
template <typename Array>
CUresult Allocate(Simulator& simulator, Record& record, Array* array) {
  if (CUresult result = simulator.MemoryContext(&array->context); result != CUDA_SUCCESS) {
    return result;
  }
  record.device = array->device = array->context->device;
  array->size = record.size;
  if (record.size == 0) return CUDA_SUCCESS;
  array->address = simulator.device(record.device)->Allocate(record.size);
  return array->address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CreateArray(const char* name, CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  Record asked{.size = sim::ArrayBytes(d)};
  return MemoryCall(name, CallGroup::kAlloc, asked, [&](Simulator& simulator, Record& record) {
    if (handle == nullptr || !Valid(d)) return CUDA_ERROR_INVALID_VALUE;
    auto array = std::make_unique<CUarray_st>();
    array->descriptor = d;
    if (CUresult result = Allocate(simulator, record, array.get()); result != CUDA_SUCCESS) {
      return result;
    }
    *handle = array.release();
    simulator.arrays.insert(*handle);
    record.address = record.handle = sim::Bits(*handle);
    return CUDA_SUCCESS;
  });
}

template <typename Array>
CUresult Destroy(const char* name, Array array, std::set<Array> Simulator::*all) {
  Record asked{.address = sim::Bits(array), .handle = sim::Bits(array)};
  return MemoryCall(name, CallGroup::kFree, asked, [&](Simulator& simulator, Record& record) {
    if ((simulator.*all).erase(array) == 0) return CUDA_ERROR_INVALID_HANDLE;
    record.size = array->size;
    record.device = array->device;
    if (array->address != 0) simulator.device(array->device)->Free(array->address, array->size);
    delete array;
    return CUDA_SUCCESS;
  });
}

CUresult MapArray(const char* name, CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  Record asked{.size = count, .stream = sim::Bits(stream)};
  return MemoryCall(name, CallGroup::kMap, asked, [&](Simulator& simulator, Record&) {
    if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; ++i) {
      bool unmaps = list[i].memOperationType == CU_MEM_OPERATION_TYPE_UNMAP;
      if (!unmaps && !simulator.physical.contains(list[i].memHandle.memHandle)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    return CUDA_SUCCESS;
  });
}

CUDA_ARRAY3D_DESCRIPTOR_v2 Flat(const CUDA_ARRAY_DESCRIPTOR_v2& d) {
  return {.Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels};
}

template <typename Array, typename Body>
CUresult WithArray(const char* name, Array array, std::set<Array> Simulator::*all, Body body) {
  return Call(name, CallGroup::kOther, [&](Simulator& simulator) {
    bool level = !(simulator.*all).contains(array);
    if constexpr (std::is_same_v<Array, CUarray>) {
      for (CUmipmappedArray mipmapped : simulator.mipmapped_arrays) {
        for (auto& part : mipmapped->levels) level = level && part.get() != array;
      }
    }
    return level ? CUDA_ERROR_INVALID_HANDLE : body();
  });
}

CUresult Require(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, uint64_t size) {
  *requirements = {};
  requirements->size = sim::RoundUp(size, sim::kPage);
  requirements->alignment = sim::kPage;
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t sim::ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  if ((d.Flags & kNoMemory) != 0) return 0;
  return d.Width * std::max<uint64_t>(d.Height, 1) * std::max<uint64_t>(d.Depth, 1) *
         d.NumChannels * ChannelBytes(d.Format);
}

CUresult sim::MakeMipmapped(CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR_v2& d,
                            unsigned int levels) {
  if (!Valid(d) || levels == 0 || levels > 32) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int level = 0; level < levels; ++level) {
    auto part = std::make_unique<CUarray_st>();
    part->descriptor = Level(d, level);
    array->levels.push_back(std::move(part));
  }
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* d) {
  sim::Arguments arguments(handle, d);
  sim::ApiCall call(__func__, arguments.data());
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CreateArray(__func__, handle, Flat(*d));
}

CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  sim::Arguments arguments(handle, d);
  sim::ApiCall call(__func__, arguments.data());
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CreateArray(__func__, handle, *d);
}

CUresult cuArrayDestroy(CUarray array) {
  sim::Arguments arguments(array);
  sim::ApiCall call(__func__, arguments.data());
  return Destroy(__func__, array, &Simulator::arrays);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* d,
                                unsigned int levels) {
  sim::Arguments arguments(handle, d, levels);
  sim::ApiCall call(__func__, arguments.data());
  if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Record asked{.size = BytesOfLevels(*d, levels)};
  return MemoryCall(__func__, CallGroup::kAlloc, asked, [&](Simulator& simulator, Record& record) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto array = std::make_unique<CUmipmappedArray_st>();
    if (CUresult result = sim::MakeMipmapped(array.get(), *d, levels); result != CUDA_SUCCESS) {
      return result;
    }
    if (CUresult result = Allocate(simulator, record, array.get()); result != CUDA_SUCCESS) {
      return result;
    }
    *handle = array.release();
    simulator.mipmapped_arrays.insert(*handle);
    record.address = record.handle = sim::Bits(*handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  sim::Arguments arguments(array);
  sim::ApiCall call(__func__, arguments.data());
  return Destroy(__func__, array, &Simulator::mipmapped_arrays);
}

CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray array, unsigned int index) {
  return WithArray(__func__, array, &Simulator::mipmapped_arrays, [&] {
    if (level == nullptr || index >= array->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *level = array->levels[index].get();
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  return WithArray(__func__, array, &Simulator::arrays, [&] {
    const CUDA_ARRAY3D_DESCRIPTOR_v2& d = array->descriptor;
    *descriptor = {d.Width, d.Height, d.Format, d.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  return WithArray(__func__, array, &Simulator::arrays, [&] {
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray array,
                                      CUdevice) {
  return WithArray(__func__, array, &Simulator::arrays, [&] {
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = array->descriptor;
    d.Flags &= ~kNoMemory;
    return Require(requirements, sim::ArrayBytes(d));
  });
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements,
                                               CUmipmappedArray array, CUdevice) {
  return WithArray(__func__, array, &Simulator::mipmapped_arrays, [&] {
    uint64_t bytes = 0;
    for (auto& level : array->levels) {
      CUDA_ARRAY3D_DESCRIPTOR_v2 d = level->descriptor;
      d.Flags &= ~kNoMemory;
      bytes += sim::ArrayBytes(d);
    }
    return Require(requirements, bytes);
  });
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return MapArray(__func__, list, count, stream);
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return MapArray(__func__, list, count, stream);
}
