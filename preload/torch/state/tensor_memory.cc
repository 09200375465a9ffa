#include "preload/torch/state/tensor_memory.h"

#include <sys/mman.h>

#include "preload/base/keep_errno.h"
#include "preload/base/memory.h"

namespace gmt::preload {
namespace {

// Returns whether 64 bytes at the address are mapped, according to the kernel. A word that is not a
// pointer must not be followed.
bool IsMapped(uint64_t address) {
  if (address < kPage || address >> 47 != 0 || address % sizeof(void*) != 0) return false;
  const uint64_t first = address / kPage * kPage;
  const uint64_t last = (address + 63) / kPage * kPage;
  unsigned char resident[2];
  return mincore(reinterpret_cast<void*>(first), last - first + kPage, resident) == 0;
}

}  // namespace

// Returns the offsets of the first pair of words that leads to the address, or kUnknown.
uint32_t TensorMemory::Search(const void* tensor, uint64_t address) {
  for (uint32_t outer = kFirstPlace; outer <= kLastPlace; outer += 8) {
    const uint64_t storage = WordAt(tensor, outer);
    if (!IsMapped(storage)) continue;
    for (uint32_t inner = kFirstPlace; inner <= kLastPlace; inner += 8) {
      const auto* object = reinterpret_cast<const void*>(storage);
      if (WordAt(object, inner) == address) return outer | inner << 8;
    }
  }
  return kUnknown;
}

[[gnu::noinline, gnu::cold]] bool TensorMemory::Learn(const void* tensor, uint64_t address,
                                                      uint32_t places) {
  const KeepErrno keep;
  // What an earlier tensor has settled is wrong if this one contradicts it.
  const uint32_t found = places == kLearning ? Search(tensor, address) : kUnknown;
  return places_.compare_exchange_strong(places, found, std::memory_order_acq_rel);
}

}  // namespace gmt::preload
