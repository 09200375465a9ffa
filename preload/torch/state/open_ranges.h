// preload/torch/state/open_ranges.h
//
// OpenRanges: the at::RecordFunction objects whose range is being recorded, so that only their ends
// are recorded. There are only a few at a time.
//
// Thread safety: all methods may be called from any thread. All-zero bytes are an empty set.

#ifndef GMT_PRELOAD_TORCH_STATE_OPEN_RANGES_H_
#define GMT_PRELOAD_TORCH_STATE_OPEN_RANGES_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class OpenRanges {
 public:
  // REQUIRES: no thread is using it.
  void Forget() {
    for (Place& place : places_) place.object.store(0, std::memory_order_relaxed);
  }

  // `object`: an address. Returns false if there is no room.
  bool Add(uint64_t object, uint64_t range) {
    for (uint32_t i = 0; i < kPlaces; ++i) {
      Place& place = places_[i];
      uint64_t free = 0;
      if (!place.object.compare_exchange_strong(free, kClaimed, std::memory_order_relaxed))
        continue;
      uint32_t used = used_.load(std::memory_order_relaxed);
      while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
      }
      place.range.store(range, std::memory_order_relaxed);
      place.object.store(object, std::memory_order_release);
      return true;
    }
    return false;
  }

  bool Holds(uint64_t object) const {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used; ++i)
      if (places_[i].object.load(std::memory_order_relaxed) == object) return true;
    return false;
  }

  // Removes the object. Returns its range; 0 if it is not in the set.
  uint64_t Remove(uint64_t object) {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used; ++i) {
      Place& place = places_[i];
      if (place.object.load(std::memory_order_acquire) != object) continue;
      const uint64_t range = place.range.load(std::memory_order_relaxed);
      if (place.object.compare_exchange_strong(object, 0)) return range;
      return 0;
    }
    return 0;
  }

 private:
  static constexpr uint64_t kClaimed = 1;  // no object has this address

  struct Place {
    std::atomic<uint64_t> object;  // 0: free
    std::atomic<uint64_t> range;
  };
  static constexpr uint32_t kPlaces = 32;
  Place places_[kPlaces];
  std::atomic<uint32_t> used_;  // no place from here on has been used
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_OPEN_RANGES_H_
