// interop/torch/torch_feed.h
//
// TorchFeed: everything in a Trace that a PyTorch snapshot contains, in the order in which it
// happened. Births and deaths are steps; side events, which are not steps, are between them.
//
// Thread safety: const methods from any thread.

#ifndef GMT_INTEROP_TORCH_TORCH_FEED_H_
#define GMT_INTEROP_TORCH_TORCH_FEED_H_

#include <cstdint>

#include "analysis/trace/trace.h"

namespace gmt::interop {

struct TorchItem {
  enum Kind : uint8_t {
    kBirth,
    kDeath,
    kSideEvent,  // of one of the kinds of a side event
  };
  Kind kind = kBirth;
  analysis::SideEvent::Kind side_event = analysis::SideEvent::kMap;
  uint32_t index = 0;  // a row, or the index in the side event
  int64_t t_ns = 0;
};

class TorchFeed {
 public:
  // `trace` must outlive the feed.
  explicit TorchFeed(const analysis::Trace& trace) : trace_(trace) {}

  // Calls take(item) for each item, until it returns false.
  template <typename Take>
  void ForEach(Take&& take) const {
    auto side_event = trace_.side_events.begin();
    for (analysis::Step step = 0;; ++step) {
      for (; side_event != trace_.side_events.end() && side_event->step == step; ++side_event) {
        if (!take(TorchItem{TorchItem::kSideEvent, side_event->kind, side_event->index,
                            side_event->t_ns}))
          return;
      }
      if (step == trace_.last_step()) return;
      const analysis::StepRecord record = trace_.steps[step];
      if (record.row == analysis::kNoRow) continue;
      const auto kind = record.is_death ? TorchItem::kDeath : TorchItem::kBirth;
      if (!take(TorchItem{kind, {}, record.row, record.t_ns})) return;
    }
  }

 private:
  const analysis::Trace& trace_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_FEED_H_
