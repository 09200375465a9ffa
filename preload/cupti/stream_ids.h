// preload/cupti/stream_ids.h
//
// StreamIds: maps CUPTI's stream numbers to streams. CUPTI's records identify contexts and streams
// by number; everything else in a recording identifies them by handle.
//
// A number is learned when its stream is first seen, at the latest when the program waits for it.
// Other numbers are unknown. Unlike handles, numbers are never reused.
//
// Thread safety: all functions may be called from any thread; lock-free. A lookup concurrent with
// an insertion may miss it. Cost: a probe or two.

#ifndef GMT_PRELOAD_CUPTI_STREAM_IDS_H_
#define GMT_PRELOAD_CUPTI_STREAM_IDS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class StreamIds {
 public:
  // CUPTI's value for "no stream".
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint32_t kCapacity = 4096;

  constexpr StreamIds() = default;

  // Returns false if the table is full.
  bool Learn(uint32_t context, uint32_t stream, uint64_t handle);
  bool Find(uint32_t context, uint32_t stream, uint64_t* handle) const;

  // The same for contexts.
  bool LearnContext(uint32_t context, uint64_t handle) { return Learn(context, kNone, handle); }
  bool FindContext(uint32_t context, uint64_t* handle) const {
    return Find(context, kNone, handle);
  }

 private:
  static constexpr uint32_t kProbes = 64;

  struct Entry {
    std::atomic<uint64_t> key;  // 0: unused
    std::atomic<uint64_t> handle;
  };
  static uint64_t Key(uint32_t context, uint32_t stream) {
    return ((uint64_t{context} << 32) | stream) + 1;
  }

  Entry entries_[kCapacity] = {};
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_STREAM_IDS_H_
