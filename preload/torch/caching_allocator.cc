#include "preload/torch/caching_allocator.h"

#include <atomic>

#include "preload/torch/torch_function.h"

namespace gmt::preload {
namespace {

// c10::cuda::CUDAStream as functions return it (c10/cuda/CUDAStream.h, PyTorch 2.11; since 1.8): a
// c10::Stream consisting of a device (two of eight bytes) and an id. It is returned in two
// registers.
struct TorchStream {
  uint64_t device;
  int64_t id;
};
using GetCurrentStream = TorchStream (*)(int8_t device);
using GetHandle = void* (*)(const TorchStream* self);

// Cache: handles by stream. PyTorch has 65 streams per device; programs may add external ones.
struct KnownStream {
  std::atomic<uint64_t> key;  // 0: free
  std::atomic<uint64_t> handle;
};
constexpr uint64_t kKnownStreams = 256;
constexpr uint64_t kClaimed = ~uint64_t{0};
constinit KnownStream known_streams[kKnownStreams];

uint64_t KeyOf(const TorchStream& stream) {
  return (static_cast<uint64_t>(stream.id) << 8 | (stream.device >> 8 & 0xff)) + 1;
}

uint64_t HandleOf(const TorchStream& stream, GetHandle get) {
  const uint64_t key = KeyOf(stream);
  KnownStream& known = known_streams[(key ^ key >> 9) % kKnownStreams];
  uint64_t seen = known.key.load(std::memory_order_acquire);
  if (seen == key) return known.handle.load(std::memory_order_relaxed);
  const uint64_t handle = reinterpret_cast<uint64_t>(get(&stream));
  if (seen == 0 && known.key.compare_exchange_strong(seen, kClaimed)) {
    known.handle.store(handle, std::memory_order_relaxed);
    known.key.store(key, std::memory_order_release);
  }
  return handle;
}

}  // namespace

// Cache: where the library is loaded.
constinit LibraryRange CachingAllocator::code_;

bool CachingAllocator::CurrentStream(uint8_t device, const void* caller, uint64_t* stream) {
  const auto current = RealTorchFunction<GetCurrentStream>(TorchFunction::kCurrentStream, caller);
  const auto handle = RealTorchFunction<GetHandle>(TorchFunction::kStreamHandle, caller);
  if (current == nullptr || handle == nullptr) return false;
  *stream = HandleOf(current(static_cast<int8_t>(device)), handle);
  return true;
}

}  // namespace gmt::preload
