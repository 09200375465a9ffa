// preload/nvtx/state/handle_map.h
//
// HandleMap: maps a number chosen by another party (a handle, an id) to a word of ours. Open
// addressing with a fixed number of slots; Put() reports if there is no room.
//
// Thread safety: all methods may be called from any thread and from signal handlers; lock-free.
// Calls for one key do not overlap, because nothing is ended while it is still being begun.
// All-zero bytes are an empty map.

#ifndef GMT_PRELOAD_NVTX_STATE_HANDLE_MAP_H_
#define GMT_PRELOAD_NVTX_STATE_HANDLE_MAP_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

template <uint64_t kPlaces>
class HandleMap {
 public:
  static_assert((kPlaces & (kPlaces - 1)) == 0);

  // REQUIRES: no thread is using it.
  void Forget() {
    for (Place& place : places_) place.key.store(kFree, std::memory_order_relaxed);
  }

  // Adds or replaces an entry. Returns false if there is no room.
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

  // Returns false if the key is not in the map.
  bool Find(uint64_t key, uint64_t* value) {
    Place* place = key > kLastKey ? nullptr : Locate(key);
    if (place == nullptr) return false;
    *value = place->value.load(std::memory_order_relaxed);
    return true;
  }

  // Same, and removes the entry.
  bool Take(uint64_t key, uint64_t* value) {
    Place* place = key > kLastKey ? nullptr : Locate(key);
    if (place == nullptr) return false;
    *value = place->value.load(std::memory_order_relaxed);
    uint64_t expected = key + kFirst;
    return place->key.compare_exchange_strong(expected, kErased, std::memory_order_acq_rel);
  }

 private:
  // States of a slot; keys are stored as larger numbers.
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
  // A slot that has never been used ends a search, because nothing was stored beyond it.
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
