// preload/torch/caching_allocator.h
//
// CachingAllocator: the address range of PyTorch's caching allocator, so that its own driver calls
// can be recognized by their return address; and the stream that it allocates for.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_
#define GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_

#include <stdint.h>

#include "preload/torch/state/library_range.h"

namespace gmt::preload {

class CachingAllocator {
 public:
  // Learns the library from a call that only the caching allocator makes. Takes the loader's lock
  // the first time.
  static void LearnFrom(const void* caller) { code_.LearnFrom(caller); }
  static bool Contains(const void* caller) { return code_.Contains(caller); }

  // Returns the raw handle of the calling thread's current stream; false if PyTorch does not
  // provide it. `caller`: as above. Asks PyTorch for the current stream every time, and for each
  // stream's handle once, which takes a driver call or two.
  static bool CurrentStream(uint8_t device, const void* caller, uint64_t* stream);

 private:
  static constinit LibraryRange code_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_CACHING_ALLOCATOR_H_
