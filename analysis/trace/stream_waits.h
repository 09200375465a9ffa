// analysis/trace/stream_waits.h
//
// StreamWaits: when the free of a block that other streams use is completed
// (analysis/trace/trace.h, T7).
//
// An allocator that must wait records a CUDA event on each of those streams while it carries out
// the free, and queries the events later. So the events belong to the next free on the same thread,
// unless they are on the block's own stream. The free is completed when the last of them has been
// seen done:
//
//   EVENT_RECORD e1, e2   FREE block   ...   SYNC e1   ...   SYNC e2
//                         dead                               completed
//
// Other code in the same library records events that it never queries (autograd, between its
// streams). It is distinguished by the code address of the record call: a site counts after an
// event of it was queried. If no site of a free ever was, it remains unknown whether the free
// waited.
//
// If an event is recorded again, or the block's address is reused, the wait must have ended, even
// if no query was seen.
//
// Thread safety: one thread at a time. Memory: the open waits, plus one entry per CUDA event.

#ifndef GMT_ANALYSIS_TRACE_STREAM_WAITS_H_
#define GMT_ANALYSIS_TRACE_STREAM_WAITS_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

class StreamWaits {
 public:
  // A position in the trace.
  struct Now {
    Step step = 0;
    uint32_t side_event = 0;  // number of side events before it
    int64_t t_ns = 0;

    bool operator<(const Now& other) const {
      return std::tie(step, side_event, t_ns) < std::tie(other.step, other.side_event, other.t_ns);
    }
  };

  void OnRecord(uint32_t thread, uint64_t site, uint64_t event, uint64_t stream, Now now);
  // `by_allocator`: the allocator's library made the query.
  void OnDone(uint64_t event, bool by_allocator, Now now);

  // Assigns the events that the thread recorded to this free.
  void OnFree(uint32_t thread, RowId row, const Rows& rows);
  // Discards them, because another block event follows.
  void OnOther(uint32_t thread);
  // The allocator reused [address, address + size). Has no effect unless has_pending().
  void OnReuse(int32_t device, uint64_t address, uint64_t size, Now now);
  // Whether addresses may still wait.
  bool has_pending() const { return !pending_.empty(); }

  // Sets `completed` and flags of the rows that waited, and inserts their completions in order.
  void Apply(Trace& trace) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr Now kNotYet{kNever, 0, 0};

  struct Awaited {  // an event, as of one free
    uint64_t site = 0;
    Now done = kNotYet;
  };
  struct Wait {
    RowId row = kNoRow;
    uint32_t first = 0, count = 0;  // range in awaited_
    Now reused = kNotYet;
  };
  struct Recorded {
    uint64_t site = 0, stream = 0;
    uint32_t awaited = kNone;
  };

  bool Counts(const Awaited& awaited) const { return confirmed_.contains(awaited.site); }
  Now CompletionOf(const Wait& wait) const;

  absl::flat_hash_map<uint64_t, Recorded> recorded_;                // by event: its last record
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> by_thread_;  // since its last block event
  absl::flat_hash_set<uint64_t> confirmed_;                         // sites
  std::vector<Awaited> awaited_;
  std::vector<Wait> waits_;
  // Addresses that may still wait: (device, address) -> size, wait.
  absl::btree_map<std::pair<int32_t, uint64_t>, std::pair<uint64_t, uint32_t>> pending_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_STREAM_WAITS_H_
