// preload/torch/state/tensor_memory.h
//
// TensorMemory: finds the memory address of a PyTorch tensor by reading two pointers.
//
//   at::Tensor -> c10::TensorImpl --word--> c10::StorageImpl --word--> address
//
// No function of PyTorch is called: for tensors of FakeTensorMode and of other subclasses these run
// Python code, and for those of functorch they print warnings.
//
// The offsets of the two words are determined at run time, because no symbol reveals them. A tensor
// that PyTorch has just created on the device has the address of the block that its allocator has
// just reported. See() searches for a pair of offsets that leads there. Every tensor created later
// confirms the offsets; a tensor that contradicts them disables this class permanently. (Seen: 16
// and 16, in PyTorch 2.1 to 2.15.)
//
// A tensor without memory (undefined, meta, sparse, opaque, functorch's wrappers) has no
// StorageImpl, or one with the address 0.
//
// Thread safety: all methods may be called from any thread; lock-free. All-zero bytes: no tensor
// seen yet.

#ifndef GMT_PRELOAD_TORCH_STATE_TENSOR_MEMORY_H_
#define GMT_PRELOAD_TORCH_STATE_TENSOR_MEMORY_H_

#include <stdint.h>
#include <string.h>

#include <atomic>

namespace gmt::preload {

// Returns the word at offset `place` of `object`.
inline uint64_t WordAt(const void* object, uint32_t place) {
  uint64_t word;
  memcpy(&word, static_cast<const char*>(object) + place, sizeof(word));
  return word;
}

class TensorMemory {
 public:
  // Learns from a TensorImpl that was just created and whose memory is known to begin at `address`.
  // Returns true if that has just settled whether tensors can be read.
  bool See(const void* tensor, uint64_t address) {
    const uint32_t places = places_.load(std::memory_order_acquire);
    if (places == kUnknown) return false;
    if (places != kLearning && Follow(tensor, places) == address) [[likely]]
      return false;
    return Learn(tensor, address, places);
  }
  bool is_known() const { return IsKnown(places_.load(std::memory_order_acquire)); }

  // Returns 0 if the tensor has no memory, or if the offsets are not known. REQUIRES: nullptr, or a
  // live TensorImpl.
  uint64_t AddressOf(const void* tensor) const {
    const uint32_t places = places_.load(std::memory_order_acquire);
    return tensor == nullptr || !IsKnown(places) ? 0 : Follow(tensor, places);
  }

 private:
  // Offsets are multiples of 8 up to 56, after the virtual table: a TensorImpl and a StorageImpl
  // have more than 64 bytes in every release. Both offsets are stored in one word, in its two low
  // bytes.
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
