// interop/torch_feed.h
//
// TorchFeed: everything of a Trace that a snapshot of PyTorch tells, in the order in which it
// happened. Births and deaths are steps; what lies between two steps (mappings, the ends of waits,
// failures, snapshots) is merged in.
//
// Cost: one sort of what is no step. Thread safety: const methods from any thread.

#ifndef GMT_INTEROP_TORCH_FEED_H_
#define GMT_INTEROP_TORCH_FEED_H_

#include <cstdint>
#include <vector>

#include "analysis/trace.h"

namespace gmt::interop {

struct TorchItem {
  enum Kind : uint8_t { kBirth, kDeath, kCompleted, kUnmapped, kMapped, kFailed, kSnapshot };
  Kind kind = kBirth;
  uint32_t index = 0;       // a row; of mappings, failed or snapshots of the trace
  analysis::Step step = 0;  // births and deaths that have happened, this one included
  int64_t t_ns = 0;
};

class TorchFeed {
 public:
  // `trace` must outlive the feed.
  explicit TorchFeed(const analysis::Trace& trace);

  // Calls take(item) for each, until it returns false.
  template <typename Take>
  void ForEach(Take&& take) const {
    auto aside = asides_.begin();
    for (analysis::Step step = 0;; ++step) {
      for (; aside != asides_.end() && aside->step == step; ++aside) {
        if (!take(*aside)) return;
      }
      if (step == trace_.last_step()) return;
      const analysis::Trace::StepRecord& record = trace_.steps[step];
      if (record.row == analysis::kNoRow) continue;
      const auto kind = record.is_death ? TorchItem::kDeath : TorchItem::kBirth;
      if (!take(TorchItem{kind, record.row, step + 1, record.t_ns})) return;
    }
  }

 private:
  void Add(TorchItem::Kind kind, size_t index, analysis::Step step, int64_t t_ns);
  void AddMapping(uint32_t index);

  const analysis::Trace& trace_;
  std::vector<TorchItem> asides_;  // by step
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_FEED_H_
