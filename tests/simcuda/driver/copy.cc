// Copies and memsets. Between host addresses they are real. The content of device memory is not
// stored unless SIMCUDA_DATA requests it: copies to the device are discarded, copies from it yield
// zeros. Managed memory is accessible to the host and always keeps its content.
#include <cstring>

#include "tests/simcuda/timeline.h"

namespace {

using sim::Bits;
using sim::Call;
using sim::CallGroup;
using sim::Record;
using sim::Region;
using sim::Simulator;

// One end of a copy.
struct End {
  sim::Memory memory = sim::Memory::kPageable;
  int device = -1;
  bool valid = true;  // false: a device address outside of any memory, or past its end
  bool on_device = false;
  bool accessible = true;  // by the host
};

sim::Memory KindOf(const Region& region) {
  if (region.allocation == nullptr) return sim::Memory::kDevice;
  switch (region.allocation->kind) {
    case sim::MemoryKind::kHost:
    case sim::MemoryKind::kRegistered:
      return sim::Memory::kPinned;
    case sim::MemoryKind::kManaged:
      return sim::Memory::kManaged;
    default:
      return sim::Memory::kDevice;
  }
}

End Inspect(const Simulator& simulator, uint64_t address, uint64_t size) {
  Region region;
  if (simulator.FindRange(address, size, &region)) {
    return {.memory = KindOf(region),
            .device = region.device_memory ? region.device : -1,
            .on_device = region.device_memory,
            .accessible = region.host_accessible};
  }
  uint64_t arenas = sim::kFirstAddress + simulator.devices().size() * sim::kArenaSize;
  return {.valid = address < sim::kFirstAddress || address >= arenas};
}

CUresult Copy(Simulator& simulator, uint64_t to, uint64_t from, uint64_t size) {
  if (sim::CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (size == 0) return CUDA_SUCCESS;
  End target = Inspect(simulator, to, size), source = Inspect(simulator, from, size);
  if (!target.valid || !source.valid) return CUDA_ERROR_INVALID_VALUE;
  uint64_t limit = simulator.settings.data;
  bool kept = (!target.on_device && !source.on_device) || limit == 0 || size <= limit;
  if (target.accessible && source.accessible && kept) {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  } else if (!target.on_device) {
    std::memset(reinterpret_cast<void*>(to), 0, size);
  }
  return CUDA_SUCCESS;
}

enum class HostSide { kGoesOn, kWaits };

// Queues a valid copy. The host waits for a synchronous copy unless both ends are on a device, and
// always for a copy into pageable memory, because there is no other way to deliver it.
void Queue(const char* name, Simulator& simulator, const End& target, const End& source,
           Record line, CUstream stream, HostSide host) {
  bool between = target.device >= 0 && source.device >= 0 && target.device != source.device;
  sim::Notice work{.work = sim::WorkKind::kCopy,
                   .from = source.memory,
                   .to = target.memory,
                   .peer = between ? source.device : -1,
                   .size = line.size};
  line.stream = Bits(stream);
  line.device = sim::CurrentContext()->device;
  line.done_ns =
      host == HostSide::kWaits ? simulator.Enqueue(stream, work) : simulator.Launch(stream, work);
  simulator.LogStreams(name, line);
  bool on_devices = target.on_device && source.on_device;
  bool waits = host == HostSide::kWaits && !on_devices;
  if (waits || target.memory == sim::Memory::kPageable) sim::HostWait(simulator, line.done_ns);
}

CUresult CopyCall(const char* name, uint64_t to, uint64_t from, uint64_t size, CUstream stream,
                  HostSide host) {
  return Call(name, CallGroup::kCopy, [&](Simulator& simulator) {
    CUresult result = Copy(simulator, to, from, size);
    if (result != CUDA_SUCCESS || size == 0) return result;
    Queue(name, simulator, Inspect(simulator, to, size), Inspect(simulator, from, size),
          {.address = to, .size = size}, stream, host);
    return result;
  });
}

CUresult SyncCopyCall(const char* name, uint64_t to, uint64_t from, uint64_t size) {
  return CopyCall(name, to, from, size, nullptr, HostSide::kWaits);
}

CUresult AsyncCopyCall(const char* name, uint64_t to, uint64_t from, uint64_t size,
                       CUstream stream) {
  return CopyCall(name, to, from, size, stream, HostSide::kGoesOn);
}

CUresult Copy2D(const char* name, const CUDA_MEMCPY2D* copy, CUstream stream, HostSide host) {
  return Call(name, CallGroup::kCopy, [&](Simulator& simulator) {
    auto address = [](CUmemorytype type, const void* host, CUdeviceptr device) {
      return type == CU_MEMORYTYPE_HOST ? Bits(host) : device;
    };
    uint64_t from = address(copy->srcMemoryType, copy->srcHost, copy->srcDevice) +
                    copy->srcY * copy->srcPitch + copy->srcXInBytes;
    uint64_t to = address(copy->dstMemoryType, copy->dstHost, copy->dstDevice) +
                  copy->dstY * copy->dstPitch + copy->dstXInBytes;
    for (size_t row = 0; row < copy->Height; ++row) {
      CUresult result = Copy(simulator, to + row * copy->dstPitch, from + row * copy->srcPitch,
                             copy->WidthInBytes);
      if (result != CUDA_SUCCESS) return result;
    }
    // To the device this is one copy, with the ends of the first row.
    End target = Inspect(simulator, to, copy->WidthInBytes);
    End source = Inspect(simulator, from, copy->WidthInBytes);
    Record line{.address = to, .size = copy->WidthInBytes * copy->Height};
    Queue(name, simulator, target, source, line, stream, host);
    return CUDA_SUCCESS;
  });
}

template <typename T>
CUresult Set(const char* name, CUdeviceptr address, T value, size_t count, CUstream stream) {
  return Call(name, CallGroup::kCopy, [&](Simulator& simulator) {
    if (sim::CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (count == 0) return CUDA_SUCCESS;
    Region region;
    uint64_t size = count * sizeof(T);
    if (!simulator.FindRange(address, size, &region)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t done = simulator.Launch(stream, {.work = sim::WorkKind::kSet,
                                              .to = KindOf(region),
                                              .value = static_cast<uint32_t>(value),
                                              .size = size});
    simulator.LogStreams(name, {.address = address,
                                .size = size,
                                .stream = Bits(stream),
                                .device = region.device,
                                .done_ns = done});
    uint64_t limit = simulator.settings.data;
    bool kept = !region.device_memory || limit == 0 || size <= limit;
    if (!region.host_accessible || !kept) return CUDA_SUCCESS;
    T* values = reinterpret_cast<T*>(address);
    for (size_t i = 0; i < count; ++i) values[i] = value;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return SyncCopyCall(__func__, to, from, size);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  return SyncCopyCall(__func__, to, Bits(from), size);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  return SyncCopyCall(__func__, Bits(to), from, size);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return SyncCopyCall(__func__, to, from, size);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return AsyncCopyCall(__func__, to, from, size, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return AsyncCopyCall(__func__, to, Bits(from), size, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return AsyncCopyCall(__func__, Bits(to), from, size, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return AsyncCopyCall(__func__, to, from, size, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
  return SyncCopyCall(__func__, to, from, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size,
                           CUstream stream) {
  return AsyncCopyCall(__func__, to, from, size, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return Copy2D(__func__, copy, nullptr, HostSide::kWaits);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return Copy2D(__func__, copy, nullptr, HostSide::kWaits);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(__func__, copy, stream, HostSide::kGoesOn);
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return Set(__func__, address, value, count, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return Set(__func__, address, value, count, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count) {
  return Set(__func__, address, value, count, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return Set(__func__, address, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count,
                          CUstream stream) {
  return Set(__func__, address, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count, CUstream stream) {
  return Set(__func__, address, value, count, stream);
}
