// preload/cupti/activity_buffers.h
//
// ActivityBuffers: the memory into which CUPTI writes its records. It is mapped once and never
// grows: 256 buffers of 64 KiB, of which CUPTI holds one for each thread that calls CUDA. When all
// are taken, CUPTI gets none, drops records, and counts them.
//
// They are small because CUPTI returns a buffer only when it is full.
//
// Thread safety: all functions may be called from any thread; lock-free.

#ifndef GMT_PRELOAD_CUPTI_ACTIVITY_BUFFERS_H_
#define GMT_PRELOAD_CUPTI_ACTIVITY_BUFFERS_H_

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class ActivityBuffers {
 public:
  static constexpr size_t kBytes = 64 << 10;  // per buffer
  static constexpr uint32_t kCount = 256;

  constexpr ActivityBuffers() = default;

  // To be called once. Returns false if there is no memory.
  bool Map();

  // Returns nullptr if no buffer is free. Buffers are page-aligned.
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
