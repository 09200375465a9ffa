// preload/torch/state/library_range.h
//
// LibraryRange: where a library lies, found out from an address in it, so that a call can be known to
// come from it by the address that the call returns to.
//
// Thread safety: all methods from any thread. Zero bytes know of no library.

#ifndef GMT_PRELOAD_TORCH_STATE_LIBRARY_RANGE_H_
#define GMT_PRELOAD_TORCH_STATE_LIBRARY_RANGE_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class LibraryRange {
 public:
  // The library of this address is the one. Takes the loader's lock the first time.
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
