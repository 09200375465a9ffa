// preload/cupti/activity_buffers.h
//
// ActivityBuffers: the memory that CUPTI writes its records into. It is mapped once and never grows:
// 256 buffers of 64 KiB, of which CUPTI keeps one for each thread that calls CUDA. When all are
// taken CUPTI gets none, drops records, and counts them.
//
// They are small because CUPTI gives a buffer back only when it is full.
//
// Thread safety: all functions from any thread, without locks.

#ifndef GMT_PRELOAD_CUPTI_ACTIVITY_BUFFERS_H_
#define GMT_PRELOAD_CUPTI_ACTIVITY_BUFFERS_H_

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class ActivityBuffers {
 public:
  static constexpr size_t kBytes = 64 << 10;  // of one
  static constexpr uint32_t kCount = 256;

  constexpr ActivityBuffers() = default;

  // Once. False where there is no memory.
  bool Map();

  // nullptr: none is free. Aligned to a page.
  uint8_t* Take();
  // REQUIRES: Owns(buffer).
  void Give(const uint8_t* buffer);
  bool Owns(const uint8_t* buffer) const;

 private:
  uint8_t* memory_ = nullptr;
  std::atomic<uint64_t> taken_[kCount / 64] = {};  // a bit each
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_ACTIVITY_BUFFERS_H_
