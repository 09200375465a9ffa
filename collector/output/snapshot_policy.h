// collector/output/snapshot_policy.h
//
// SnapshotPolicy: decides when an automatic snapshot is due: at intervals, when a heap of some
// device has grown by a given amount since the last snapshot of this kind, and at marks.
//
// Growth is counted per heap from the maximum that was live at earlier growth snapshots, so that a
// program that repeatedly allocates and frees the same memory does not cause a snapshot each time.
// The first growth of a heap is counted from zero.
//
// Thread safety: one thread at a time. Cost: one comparison per heap.

#ifndef GMT_COLLECTOR_OUTPUT_SNAPSHOT_POLICY_H_
#define GMT_COLLECTOR_OUTPUT_SNAPSHOT_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/events/tally.h"
#include "session/options.h"

namespace gmt::collector {

class SnapshotPolicy {
 public:
  // May be called again with other options; the levels reached so far stay.
  void Follow(const session::Options& options, uint64_t now_ns) {
    every_ns_ = options.snapshot_every_ns;
    growth_bytes_ = options.snapshot_growth_bytes;
    at_marks_ = options.snapshot_at_marks;
    mark_ = options.snapshot_mark;
    next_ns_ = now_ns + every_ns_;
  }

  // Returns "interval" or "growth", both the reason and the name of a due snapshot; null if none
  // is.
  const char* Due(uint64_t now_ns, const std::vector<HeapCounts>& heaps) {
    if (growth_bytes_ != 0 && HasGrown(heaps)) return "growth";
    if (every_ns_ == 0 || now_ns < next_ns_) return nullptr;
    // One snapshot, not one for each interval that was missed while nothing was read.
    next_ns_ = std::max(next_ns_ + every_ns_, now_ns + every_ns_ / 2);
    return "interval";
  }

  bool at_marks() const { return at_marks_; }
  // Returns whether this mark triggers a snapshot: at most one per kBetweenMarks.
  bool IsDueAtMark(const std::string& name, uint64_t t_ns) {
    if (!at_marks_ || (!mark_.empty() && name != mark_) || t_ns < next_mark_ns_) return false;
    next_mark_ns_ = t_ns + kBetweenMarks;
    return true;
  }

 private:
  static constexpr uint64_t kBetweenMarks = 100'000'000;

  bool HasGrown(const std::vector<HeapCounts>& heaps) {
    levels_.resize(heaps.size(), 0);
    bool grown = false;
    for (size_t i = 0; i < heaps.size(); ++i) {
      grown = grown || (heaps[i].live_bytes > levels_[i] &&
                        heaps[i].live_bytes - levels_[i] >= growth_bytes_);
    }
    for (size_t i = 0; grown && i < heaps.size(); ++i)
      levels_[i] = std::max(levels_[i], heaps[i].live_bytes);
    return grown;
  }

  uint64_t every_ns_ = 0, growth_bytes_ = 0, next_ns_ = 0, next_mark_ns_ = 0;
  bool at_marks_ = false;
  std::string mark_;              // "": any
  std::vector<uint64_t> levels_;  // by heap: the maximum live bytes at a growth snapshot
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_SNAPSHOT_POLICY_H_
