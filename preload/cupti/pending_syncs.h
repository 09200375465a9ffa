// preload/cupti/pending_syncs.h
//
// PendingSyncs: waits that only CUPTI saw, kept until CUPTI has reported their duration.
//
// The callback at the end of a wait provides thread, stack and stream. The record that arrives
// later provides beginning and end, but records arrive for every wait, including those already
// recorded by a hook. A record whose end matches a callback on its stream belongs to that callback.
// A record without a callback belongs to a hook and adds nothing.
//
// Thread safety: Add() from any thread, lock-free; the others only by the holder of the lock.

#ifndef GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_
#define GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_

#include <stdint.h>

#include <atomic>

#include "session/record.h"

namespace gmt::preload {

class PendingSyncs {
 public:
  static constexpr uint32_t kCapacity = 512;
  // Maximum distance between CUPTI's end of a wait and our callback: the callback comes slightly
  // later, and the two clocks are not read at the same moment.
  static constexpr uint64_t kToleranceNs = 1000000;

  constexpr PendingSyncs() = default;

  // `sync`: as seen by the callback; its time is the end of the wait. Returns false if the table is
  // full.
  bool Add(const session::Record& sync);

  // Removes the callback that belongs to a wait of that stream (action kDevice: of the whole
  // context) with that end; if there are several, the nearest.
  bool Take(session::Action action, uint64_t stream, uint64_t end_ns, session::Record* sync);

  // Removes one callback whose wait ended before `than_ns`.
  bool TakeOlder(uint64_t than_ns, session::Record* sync);

 private:
  enum : uint32_t { kFree, kBeingWritten, kWaiting };

  struct Entry {
    std::atomic<uint32_t> state;
    session::Words sync;  // packed, so that an unused table is all zero bytes
  };

  static bool Release(Entry* entry, session::Record* sync);

  Entry entries_[kCapacity] = {};
  std::atomic<uint32_t> next_{0};
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_
