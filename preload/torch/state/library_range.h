// preload/torch/state/library_range.h
//
// LibraryRange: the address range of a library, determined from an address in it, so that a call
// from it can be recognized by its return address.
//
// Thread safety: all methods may be called from any thread. All-zero bytes: no library is known
// yet.

#ifndef GMT_PRELOAD_TORCH_STATE_LIBRARY_RANGE_H_
#define GMT_PRELOAD_TORCH_STATE_LIBRARY_RANGE_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class LibraryRange {
 public:
  // Takes the library that contains this address, unless one is known. Takes the loader's lock the
  // first time.
  void LearnFrom(const void* address) {
    if (end_.load(std::memory_order_relaxed) == 0) [[unlikely]]
      Locate(address);
  }

  bool Contains(const void* address) const {
    const auto place = reinterpret_cast<uint64_t>(address);
    return place >= begin_.load(std::memory_order_relaxed) &&
           place < end_.load(std::memory_order_relaxed);
  }

 private:
  void Locate(const void* address);

  std::atomic<uint64_t> begin_, end_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_LIBRARY_RANGE_H_
