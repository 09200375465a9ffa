// collector/output/snapshot_policy.h
//
// SnapshotPolicy: when a snapshot is due that nobody asked for at that moment: every so often, when
// some device's heap holds so much more than at the last snapshot of this kind, and at marks.
//
// Growth is counted from the most that was live at the last one, heap by heap, so that a program that
// allocates and frees the same again and again is not photographed each time. The first step of a
// heap is counted from nothing.
//
// Thread safety: one thread at a time. Cost: a comparison for each heap.

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
  // May be called again with others; what was counted stays.
  void Follow(const session::Options& options, uint64_t now_ns) {
    every_ns_ = options.snapshot_every_ns;
    growth_bytes_ = options.snapshot_growth_bytes;
    at_marks_ = options.snapshot_at_marks;
    mark_ = options.snapshot_mark;
    next_ns_ = now_ns + every_ns_;
  }

  // "interval" or "growth": the reason, which is the name as well; null: none is due.
  const char* Due(uint64_t now_ns, const std::vector<HeapCounts>& heaps) {
    if (growth_bytes_ != 0 && HasGrown(heaps)) return "growth";
    if (every_ns_ == 0 || now_ns < next_ns_) return nullptr;
    // Not one for each that was missed while nobody read.
    next_ns_ = std::max(next_ns_ + every_ns_, now_ns + every_ns_ / 2);
    return "interval";
  }

  bool at_marks() const { return at_marks_; }
  // Whether this mark asks for one. A loop that marks more often than kBetweenMarks gets no more.
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
  std::string mark_;  // "": any
  std::vector<uint64_t> levels_;  // by heap: the most that was live at a snapshot
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_SNAPSHOT_POLICY_H_
