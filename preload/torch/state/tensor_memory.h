// preload/torch/state/tensor_memory.h
//
// TensorMemory: from one of PyTorch's tensors to the address of its memory, by reading two pointers.
//
//   at::Tensor -> c10::TensorImpl --word--> c10::StorageImpl --word--> address
//
// No function of PyTorch is called: for tensors of FakeTensorMode and of other subclasses they run
// Python code, and for those of functorch they print warnings.
//
// At which places the two words stand is found out in the process, for no symbol says so. A tensor
// that PyTorch has just made on the device has the address of the block that its allocator has just
// reported: See() looks for a pair of places that leads there. Every later tensor that is made
// confirms the places; one that contradicts ends it, for good. (Seen: 16 and 16, in PyTorch 2.1 to
// 2.15.)
//
// A tensor without memory (undefined, meta, sparse, opaque, functorch's wrappers) has no StorageImpl,
// or one with the address 0.
//
// Thread safety: all methods from any thread, without a lock. Zero bytes have seen nothing.

#ifndef GMT_PRELOAD_TORCH_STATE_TENSOR_MEMORY_H_
#define GMT_PRELOAD_TORCH_STATE_TENSOR_MEMORY_H_

#include <stdint.h>
#include <string.h>

#include <atomic>

namespace gmt::preload {

// The word `place` bytes behind `object`.
inline uint64_t WordAt(const void* object, uint32_t place) {
  uint64_t word;
  memcpy(&word, static_cast<const char*>(object) + place, sizeof(word));
  return word;
}

class TensorMemory {
 public:
  // A TensorImpl that was just made and whose memory is known to begin at `address`. True when that
  // has just settled whether tensors can be read.
  bool See(const void* tensor, uint64_t address) {
    const uint32_t places = places_.load(std::memory_order_acquire);
    if (places == kUnknown) return false;
    if (places != kLearning && Follow(tensor, places) == address) [[likely]]
      return false;
    return Learn(tensor, address, places);
  }
  bool is_known() const { return IsKnown(places_.load(std::memory_order_acquire)); }

  // 0: it has none, or it is not known how to tell. REQUIRES: nullptr, or a TensorImpl that is alive.
  uint64_t AddressOf(const void* tensor) const {
    const uint32_t places = places_.load(std::memory_order_acquire);
    return tensor == nullptr || !IsKnown(places) ? 0 : Follow(tensor, places);
  }

 private:
  // Places are multiples of 8 up to 56, behind the virtual table: a TensorImpl and a StorageImpl have
  // more than 64 bytes in every release. The two stand in one word, in its two bytes.
  static constexpr uint32_t kLearning = 0, kUnknown = 1;
  static constexpr uint32_t kFirstPlace = 8, kLastPlace = 56;

  static bool IsKnown(uint32_t places) { return places > kUnknown; }
  static uint64_t Follow(const void* tensor, uint32_t places) {
    const uint64_t storage = WordAt(tensor, places & 0xff);
    return storage == 0 ? 0 : WordAt(reinterpret_cast<const void*>(storage), places >> 8);
  }

  bool Learn(const void* tensor, uint64_t address, uint32_t places);
  static uint32_t Search(const void* tensor, uint64_t address);

  std::atomic<uint32_t> places_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TENSOR_MEMORY_H_
