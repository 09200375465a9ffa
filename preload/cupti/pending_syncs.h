// preload/cupti/pending_syncs.h
//
// PendingSyncs: waits that only CUPTI saw, until it has said how long they were.
//
// The callback at the end of a wait tells thread, stack and stream; the record that comes later tells
// the beginning and the end, of every wait, those that a hook has recorded already among them. A
// record that ends when a callback came on its stream is that callback's; one without a callback is
// a hook's, and adds nothing.
//
// Thread safety: Add() from any thread, without locks; the others by who has the turn.

#ifndef GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_
#define GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_

#include <stdint.h>

#include <atomic>

#include "session/record.h"

namespace gmt::preload {

class PendingSyncs {
 public:
  static constexpr uint32_t kCapacity = 512;
  // How far apart CUPTI's end of a wait and our callback may be: it is called a moment later, and the
  // two clocks are not read at once.
  static constexpr uint64_t kToleranceNs = 1000000;

  constexpr PendingSyncs() = default;

  // `sync`: as the callback saw it; its time is when the wait ended. False where there is no room.
  bool Add(const session::Record& sync);

  // Takes the callback that belongs to a wait of that stream (of the whole context: action kDevice)
  // with that end, the nearest where there are several.
  bool Take(session::Action action, uint64_t stream, uint64_t end_ns, session::Record* sync);

  // Takes one whose end lies before that.
  bool TakeOlder(uint64_t than_ns, session::Record* sync);

 private:
  enum : uint32_t { kFree, kBeingWritten, kWaiting };

  struct Entry {
    std::atomic<uint32_t> state;
    session::Words sync;  // packed: an unused table is zero bytes
  };

  static bool Release(Entry* entry, session::Record* sync);

  Entry entries_[kCapacity] = {};
  std::atomic<uint32_t> next_{0};
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_PENDING_SYNCS_H_
