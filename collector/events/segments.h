// collector/events/segments.h
//
// Segments: which device memory has ever held a block of a framework. A caching allocator keeps
// such memory when the blocks are freed; without them, it looks like any other memory. Physical
// memory is not followed: it is found through the reservation that it is mapped into.
//
// Thread safety: one thread at a time. Cost: for a block, a look-up among the memory that has not
// held any, which is little: nothing if there is none.

#ifndef GMT_COLLECTOR_EVENTS_SEGMENTS_H_
#define GMT_COLLECTOR_EVENTS_SEGMENTS_H_

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "collector/events/live_model.h"

namespace gmt::collector {

class Segments : public LiveObserver {
 public:
  // Every change of the live set is also passed on to `next`, which must outlive this.
  explicit Segments(LiveObserver* next) : next_(next) {}

  void OnBorn(const Place& place, const session::LiveValue& live) override;
  void OnEnded(const Place& place, const session::LiveValue& live) override;
  void OnRestored(const Place& place, const session::LiveValue& live) override;

  // Whether the device memory that begins at `address` has held a block.
  bool Contains(uint64_t address) const { return segments_.contains(address); }

 private:
  void Note(const Place& place, const session::LiveValue& live);

  LiveObserver* const next_;
  absl::flat_hash_set<uint64_t> segments_;       // by their first address
  std::map<uint64_t, uint64_t> without_blocks_;  // the end of other device memory, by its beginning
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_SEGMENTS_H_
