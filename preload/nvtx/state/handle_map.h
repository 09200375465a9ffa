// preload/nvtx/state/handle_map.h
//
// HandleMap: from a number that somebody else has chosen (a handle, an id) to a word of ours. Open
// addressing, a fixed number of places; who finds no place is told.
//
// Thread safety: all methods from any thread and from signal handlers, without a lock. Calls for one
// key do not overlap, as nobody ends what is still being begun. Zero bytes are an empty map.

#ifndef GMT_PRELOAD_NVTX_STATE_HANDLE_MAP_H_
#define GMT_PRELOAD_NVTX_STATE_HANDLE_MAP_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

template <uint64_t kPlaces>
class HandleMap {
 public:
  static_assert((kPlaces & (kPlaces - 1)) == 0);

  // REQUIRES: nobody uses it.
  void Forget() {
    for (Place& place : places_) place.key.store(kFree, std::memory_order_relaxed);
  }

  // Adds or replaces. False: there is no room for it.
  bool Put(uint64_t key, uint64_t value) {
    if (key > kLastKey) return false;
    if (Place* known = Locate(key); known != nullptr) {
      known->value.store(value, std::memory_order_relaxed);
      return true;
    }
    for (uint64_t probe = 0; probe < kProbes; ++probe) {
      Place& place = At(key, probe);
      uint64_t seen = place.key.load(std::memory_order_relaxed);
      if ((seen != kFree && seen != kErased) ||
          !place.key.compare_exchange_strong(seen, kClaimed, std::memory_order_acquire)) {
        continue;
      }
      place.value.store(value, std::memory_order_relaxed);
      place.key.store(key + kFirst, std::memory_order_release);
      return true;
    }
    return false;
  }

  // False: it is not there.
  bool Find(uint64_t key, uint64_t* value) {
    Place* place = key > kLastKey ? nullptr : Locate(key);
    if (place == nullptr) return false;
    *value = place->value.load(std::memory_order_relaxed);
    return true;
  }

  // The same, and takes it out.
  bool Take(uint64_t key, uint64_t* value) {
    Place* place = key > kLastKey ? nullptr : Locate(key);
    if (place == nullptr) return false;
    *value = place->value.load(std::memory_order_relaxed);
    uint64_t expected = key + kFirst;
    return place->key.compare_exchange_strong(expected, kErased, std::memory_order_acq_rel);
  }

 private:
  // States of a place; keys are kept behind them.
  static constexpr uint64_t kFree = 0, kErased = 1, kClaimed = 2, kFirst = 3;
  static constexpr uint64_t kLastKey = ~uint64_t{0} - kFirst;
  static constexpr uint64_t kProbes = kPlaces < 64 ? kPlaces : 64;

  struct Place {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> value;
  };

  Place& At(uint64_t key, uint64_t probe) {
    return places_[((key * 0x9e3779b97f4a7c15 >> 32) + probe) & (kPlaces - 1)];
  }
  // A place that was free once ends a search: nothing was put behind it.
  Place* Locate(uint64_t key) {
    for (uint64_t probe = 0; probe < kProbes; ++probe) {
      Place& place = At(key, probe);
      const uint64_t seen = place.key.load(std::memory_order_acquire);
      if (seen == key + kFirst) return &place;
      if (seen == kFree) return nullptr;
    }
    return nullptr;
  }

  Place places_[kPlaces];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_STATE_HANDLE_MAP_H_
