#include "preload/cupti/activity_buffers.h"

#include <sys/mman.h>

namespace gmt::preload {

bool ActivityBuffers::Map() {
  if (memory_ != nullptr) return true;
  void* memory = mmap(nullptr, kBytes * kCount, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<uint8_t*>(memory);
  return true;
}

uint8_t* ActivityBuffers::Take() {
  if (memory_ == nullptr) return nullptr;
  for (uint32_t word = 0; word < kCount / 64; ++word) {
    uint64_t taken = taken_[word].load(std::memory_order_relaxed);
    while (~taken != 0) {
      const auto bit = static_cast<uint32_t>(__builtin_ctzll(~taken));
      if (taken_[word].compare_exchange_weak(taken, taken | uint64_t{1} << bit,
                                             std::memory_order_acquire)) {
        return memory_ + (word * 64 + bit) * kBytes;
      }
    }
  }
  return nullptr;
}

void ActivityBuffers::Give(const uint8_t* buffer) {
  const auto i = static_cast<uint32_t>(static_cast<size_t>(buffer - memory_) / kBytes);
  taken_[i / 64].fetch_and(~(uint64_t{1} << i % 64), std::memory_order_release);
}

bool ActivityBuffers::Owns(const uint8_t* buffer) const {
  return memory_ != nullptr && buffer >= memory_ && buffer < memory_ + kBytes * kCount;
}

}  // namespace gmt::preload
