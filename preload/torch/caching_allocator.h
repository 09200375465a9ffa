// preload/torch/caching_allocator.h
//
// CachingAllocator: where the code of PyTorch's caching allocator lies, so that a driver call can be
// told to be its own by the address that the call returns to; and the stream that it allocates for.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_
#define GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class CachingAllocator {
 public:
  // The library of a call that only the caching allocator makes. Takes the loader's lock the first
  // time.
  static void LearnFrom(const void* caller) {
    if (end_.load(std::memory_order_relaxed) == 0) [[unlikely]]
      Locate(caller);
  }

  static bool Contains(const void* caller) {
    const auto address = reinterpret_cast<uint64_t>(caller);
    return address >= begin_.load(std::memory_order_relaxed) &&
           address < end_.load(std::memory_order_relaxed);
  }

  // The raw handle of the calling thread's current stream; false where PyTorch does not tell.
  // `caller`: as above. Asks PyTorch for the current stream every time, and for a stream's handle
  // once, which takes a driver call or two.
  static bool CurrentStream(uint8_t device, const void* caller, uint64_t* stream);

 private:
  static void Locate(const void* caller);

  static constinit std::atomic<uint64_t> begin_, end_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_
