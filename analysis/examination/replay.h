// analysis/examination/replay.h
//
// Replay: walks a Trace once, step by step, and keeps what is held by device, heap and stack, now
// and at its peak. All answers about amounts use it, so no two of them can disagree.
//
// Device peak: the state in which a device held most bytes, each byte counted once: driver memory,
// and blocks outside known driver memory. A caching allocator holds the same segments for a long
// time; of states with equal bytes the one with most bytes in blocks counts, because it explains
// why the segments are needed.
//
// Allocated peak: the state with most bytes that the program had asked for, each counted once:
// blocks, and driver memory that holds none. What a caching allocator merely keeps is not part of
// it.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_EXAMINATION_REPLAY_H_
#define GMT_ANALYSIS_EXAMINATION_REPLAY_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

// The part of a recording in which peaks are searched and calls counted; both ends are included.
struct Window {
  int64_t from_ns = INT64_MIN;
  int64_t to_ns = INT64_MAX;
};

struct Amount {
  uint64_t live = 0;  // bytes
  uint64_t peak = 0;
  Step peak_step = 0;

  void Add(uint64_t bytes) { live += bytes; }
  void Remove(uint64_t bytes) { live -= bytes; }
  void NotePeak(Step step) {
    if (live > peak) peak = live, peak_step = step;
  }
};

struct HeapTotals {
  Amount bytes;
  uint64_t allocations = 0, frees = 0;
};

struct DeviceTotals {
  Amount bytes;         // each byte counted once
  Amount segments;      // driver memory that holds blocks
  Amount allocated;     // rows for which IsAllocated()
  uint64_t blocks = 0;  // bytes in blocks now
  uint64_t blocks_at_peak = 0;
};

// Whether the program asked for the row's memory: a block, or driver memory that holds none. A
// region is a name for memory that has a row of its own, unless that was not recorded.
bool IsAllocated(const Rows& rows, RowId row);
bool IsAllocated(const RowKind& kind);

class Replay {
 public:
  // Walks the whole trace. `live` of every amount is the value at the end of the window.
  explicit Replay(const Trace& trace, Window window = {})
      : Replay(trace, RowKinds(trace), window) {}
  Replay(const Trace& trace, const RowKinds& kinds, Window window = {});

  using HeapKey = std::pair<int32_t, uint32_t>;  // device, heap
  const std::map<HeapKey, HeapTotals>& heaps() const { return heaps_; }
  const std::map<int32_t, DeviceTotals>& devices() const { return devices_; }
  // By stack id; index 0 is memory with unknown stack.
  const std::vector<Amount>& stacks() const { return stacks_; }
  // The last step in the window.
  Step end() const { return end_; }

 private:
  // What a row of some kind counts for.
  struct Counters {
    HeapTotals* heap = nullptr;  // null until the first row of the kind
    DeviceTotals* device = nullptr;
    bool is_device_bytes = false, is_segment = false, is_allocated = false, is_block = false;
  };
  void Apply(RowId row, const RowKinds& kinds, bool is_death, Step step);
  Counters CountersOf(const RowKind& kind);
  void Enter(Step step);

  const Trace& trace_;
  std::map<HeapKey, HeapTotals> heaps_;
  std::map<int32_t, DeviceTotals> devices_;
  std::vector<Amount> stacks_;
  bool inside_ = false;
  Step end_ = 0;
  std::vector<Counters> counters_;  // by kind
};

// Returns the rows held after `step`, ordered by id.
std::vector<RowId> HeldAfter(const Trace& trace, Step step);

// Returns the state at time `t_ns`: the number of steps before the first one later than `t_ns`.
Step StepAt(const Trace& trace, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_REPLAY_H_
