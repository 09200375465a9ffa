#include "interop/torch/torch_selection.h"

#include <algorithm>

namespace gmt::interop {
namespace {

using analysis::kNoRow;
using analysis::RowId;
using analysis::Trace;

class CountingSink : public TorchSelectedSink {
 public:
  CountingSink(const analysis::Window& window, size_t rows)
      : TorchSelectedSink(window, 0, none_), by_row_(rows) {}

  // The number of entries of each row in the window, up to the maximum of a byte.
  std::vector<uint8_t>& by_row() { return by_row_; }

 private:
  void OnSelected(const TorchEvent& event) override {
    if (event.row >= by_row_.size()) return;
    uint8_t& count = by_row_[event.row];
    count = static_cast<uint8_t>(std::min(count + 1, UINT8_MAX));
  }

  std::vector<bool> none_;
  std::vector<uint8_t> by_row_;
};

// Keeps the largest of the rows that ended in the window.
void LeaveSmallest(const Trace& trace, const std::vector<TorchSegment>& at_end,
                   const TorchSelection& selection, std::vector<uint8_t>& events, TorchPlan& plan) {
  for (const TorchSegment& segment : at_end) {
    events[segment.row] = 0;
    for (const TorchBlock& block : segment.blocks) {
      if (block.row != kNoRow) events[block.row] = 0;
    }
  }
  std::vector<RowId> ended;
  uint64_t of_ended = 0;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    const bool holds_blocks = (trace.rows.flags[row] & analysis::kRowHoldsBlocks) != 0;
    if (events[row] == 0 || holds_blocks) continue;
    ended.push_back(row);
    of_ended += events[row];
  }
  const auto larger = [&](RowId a, RowId b) {
    return trace.rows.size[a] != trace.rows.size[b] ? trace.rows.size[a] > trace.rows.size[b]
                                                    : a > b;
  };
  std::sort(ended.begin(), ended.end(), larger);
  uint64_t kept = plan.events - of_ended;
  plan.left.assign(trace.rows.count(), false);
  for (RowId row : ended) {
    kept += events[row];
    if (kept <= selection.max_events) continue;
    plan.left[row] = true;
    ++plan.rows_left;
    plan.largest_left = std::max(plan.largest_left, trace.rows.size[row]);
  }
}

}  // namespace

void TorchSelectedSink::OnBoundary(int64_t t_ns) {
  inside_ = inside_ || t_ns >= window_.from_ns;
  selecting_ = inside_ && seen_ >= skip_;
}

void TorchSelectedSink::OnEvent(const TorchEvent& event) {
  if (!inside_) return;
  ++seen_;
  if (!selecting_ || (event.row < left_.size() && left_[event.row])) return;
  ++selected_;
  if (!first_t_ns_) first_t_ns_ = event.t_ns;
  OnSelected(event);
}

void RunTorchModel(const TorchFeed& feed, const analysis::Window& window, TorchModel& model) {
  model.Begin();
  feed.ForEach([&](const TorchItem& item) {
    if (item.t_ns > window.to_ns) return false;
    model.Take(item);
    return true;
  });
  model.Finish();
}

TorchPlan PlanTorchTrace(const Trace& trace, const TorchFeed& feed, int32_t device,
                         const TorchSelection& selection,
                         const std::vector<bool>& ignored_failures) {
  TorchPlan plan;
  plan.device = device;
  const bool by_size = selection.keep == TorchSelection::Keep::kLargest;
  const size_t rows = by_size && selection.max_events > 0 ? trace.rows.count() : 0;
  CountingSink learning(selection.window, 0), counting(selection.window, rows);
  TorchModel learner(trace, device, TorchModel::Mode::kLearn, plan.facts, learning);
  learner.IgnoreFailures(&ignored_failures);
  RunTorchModel(feed, selection.window, learner);
  TorchModel counter(trace, device, TorchModel::Mode::kEmit, plan.facts, counting);
  counter.IgnoreFailures(&ignored_failures);
  RunTorchModel(feed, selection.window, counter);
  plan.events = counting.seen();
  if (selection.max_events == 0 || plan.events <= selection.max_events) return plan;
  if (by_size) {
    LeaveSmallest(trace, counter.Segments(), selection, counting.by_row(), plan);
  } else {
    plan.skipped = plan.events - selection.max_events;
  }
  return plan;
}

}  // namespace gmt::interop
