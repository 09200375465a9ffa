// preload/process/door.h
//
// Door: what a process needs to be attached to and detached from while it runs. Part of Process
// (preload/process/process.h); zero bytes are closed.
//
// Attach and detach are one word of the session (session/layout.h, attach_wanted) that each hooked
// call looks at. Who finds it changed begins or ends the recording (preload/lifecycle/attach.h). To end it must
// know that nobody writes to the session any more, for its memory is taken away and the tables begin
// empty the next time. So who records is counted in while it writes (preload/process/writing.h), in one of a
// few places chosen by thread, so that threads do not share a cache line.
//
//   writer                             who ends the recording
//   count in                           status: not recording
//   status still recording? write      wait until nobody is counted in
//   count out
//
// Both first write and then look at what the other wrote (sequentially consistent), so that one of
// them sees the other.
//
// Thread safety: all methods from any thread and from signal handlers.

#ifndef GMT_PRELOAD_PROCESS_DOOR_H_
#define GMT_PRELOAD_PROCESS_DOOR_H_

#include <stdint.h>

#include <atomic>

#include "session/layout.h"
#include "session/options.h"

namespace gmt::preload {

struct Door {
  struct alignas(64) Place {
    std::atomic<uint32_t> inside;
  };
  static constexpr uint32_t kPlaces = 32;

  // attach_wanted of the session; `closed` where there is no door.
  const std::atomic<uint32_t>* wanted;
  std::atomic<uint32_t> closed;  // always 0
  // The value of *wanted that has been acted upon.
  std::atomic<uint32_t> seen;
  bool is_open;              // constant once the process has begun
  session::Options options;  // of the process, without those of an attach
  uint64_t arena_words;      // that the session's arena begins with
  Place places[kPlaces];

  void Close() { wanted = &closed; }
  void Open(session::Control* control) {
    wanted = &control->attach_wanted;
    is_open = true;
  }
  bool IsTurned() const {
    return wanted->load(std::memory_order_relaxed) != seen.load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t>* PlaceOf(const void* thread) {
    const auto address = reinterpret_cast<uint64_t>(thread);
    return &places[(address >> 6) * 0x9e3779b97f4a7c15 >> 59].inside;
  }
  static_assert(kPlaces == 1 << (64 - 59));

  bool AnybodyInside() const {
    for (const Place& place : places) {
      if (place.inside.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_DOOR_H_
