// preload/cupti/stream_ids.h
//
// StreamIds: which stream a record of CUPTI means. Records number contexts and streams; everything
// else in a recording knows them by handle.
//
// A number is learned when its stream is seen, at the latest when somebody waits for it. A number
// that was never learned is not known. Numbers are not used twice, handles are.
//
// Thread safety: all functions from any thread, without locks. A lookup beside an insertion may miss
// it. Cost: a probe or two.

#ifndef GMT_PRELOAD_CUPTI_STREAM_IDS_H_
#define GMT_PRELOAD_CUPTI_STREAM_IDS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class StreamIds {
 public:
  // What CUPTI writes where no stream is meant.
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint32_t kCapacity = 4096;

  constexpr StreamIds() = default;

  // False where there is no room.
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
