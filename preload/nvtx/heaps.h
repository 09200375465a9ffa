// preload/nvtx/heaps.h
//
// NvtxHeaps: the currently registered heaps of NVTX's memory extension: their address ranges,
// because the end of a heap also ends the regions inside, and their names, for sessions that start
// later.
//
// Bounded. Heaps that do not fit are counted, and their regions end one by one.
//
// Thread safety: all methods may be called from any thread; lock-free; calls for one heap do not
// overlap. All-zero bytes are no heaps.

#ifndef GMT_PRELOAD_NVTX_HEAPS_H_
#define GMT_PRELOAD_NVTX_HEAPS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

struct NvtxName;

struct NvtxHeap {
  static constexpr uint32_t kFree = 0, kClaimed = 1, kReady = 2;

  std::atomic<uint32_t> state;
  std::atomic<uint32_t>
      recorded_in;       // Process::identity of the session in which it has been recorded
  uint64_t handle;       // as known to the program
  uint64_t start, size;  // 0, 0 if it has no addresses
  NvtxName* name;
  NvtxName* domain;

  bool Contains(uint64_t address) const { return address - start < size; }
};

class NvtxHeaps {
 public:
  // Returns nullptr if there is no room.
  NvtxHeap* Add(uint64_t handle, uint64_t start, uint64_t size, NvtxName* name, NvtxName* domain) {
    for (NvtxHeap& heap : heaps_) {
      uint32_t free = NvtxHeap::kFree;
      if (!heap.state.compare_exchange_strong(free, NvtxHeap::kClaimed)) continue;
      heap.recorded_in.store(0, std::memory_order_relaxed);
      heap.handle = handle;
      heap.start = start;
      heap.size = size;
      heap.name = name;
      heap.domain = domain;
      heap.state.store(NvtxHeap::kReady, std::memory_order_release);
      return &heap;
    }
    return nullptr;
  }

  // Returns a handle for a heap without addresses.
  uint64_t NewHandle() { return last_handle_.fetch_add(1, std::memory_order_relaxed) + 1; }

  NvtxHeap* Find(uint64_t handle) {
    for (NvtxHeap& heap : heaps_) {
      if (IsThere(heap) && heap.handle == handle) return &heap;
    }
    return nullptr;
  }
  static void Remove(NvtxHeap* heap) {
    heap->state.store(NvtxHeap::kFree, std::memory_order_release);
  }

  // Returns whether an address lies in one of them.
  bool Contain(uint64_t address) const {
    for (const NvtxHeap& heap : heaps_) {
      if (IsThere(heap) && heap.Contains(address)) return true;
    }
    return false;
  }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (NvtxHeap& heap : heaps_) {
      if (IsThere(heap)) visit(&heap);
    }
  }

 private:
  static bool IsThere(const NvtxHeap& heap) {
    return heap.state.load(std::memory_order_acquire) == NvtxHeap::kReady;
  }

  NvtxHeap heaps_[256];
  std::atomic<uint64_t> last_handle_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_HEAPS_H_
