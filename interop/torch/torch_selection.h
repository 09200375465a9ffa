// interop/torch/torch_selection.h
//
// How much of a recording a snapshot contains: one device or all, a time window, and no more
// entries than PyTorch's viewer can show. What is included is correct, whatever is left out:
//
//   newest   The trace begins later. What existed at that time is part of the state that readers
//            reconstruct, so it is shown as earlier memory.
//   largest  The trace covers the whole time. The smallest allocations that ended in it are left
//            out with all their entries, as if they had never existed. What exists at the end
//            stays.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TORCH_TORCH_SELECTION_H_
#define GMT_INTEROP_TORCH_TORCH_SELECTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/examination/replay.h"
#include "analysis/trace/trace.h"
#include "interop/torch/torch_feed.h"
#include "interop/torch/torch_model.h"

namespace gmt::interop {

// The viewer's event list has a page element for each event. A trace of this size loads in seconds;
// browsers fail at about ten times as many.
inline constexpr uint64_t kTorchMaxEvents = 100'000;

struct TorchSelection {
  enum class Keep { kNewest, kLargest };

  std::optional<int32_t> device;
  analysis::Window window;
  uint64_t max_events = kTorchMaxEvents;  // per device; 0: all
  Keep keep = Keep::kNewest;
};

// What is included of one device.
struct TorchPlan {
  int32_t device = 0;
  TorchSegmentFacts facts;
  uint64_t events = 0;     // events in the window, including those left out
  uint64_t skipped = 0;    // number of oldest events left out
  std::vector<bool> left;  // rows left out; empty: none
  uint64_t rows_left = 0;
  uint64_t largest_left = 0;  // bytes
};

// `ignored_failures` is indexed like Trace::failed.
TorchPlan PlanTorchTrace(const analysis::Trace& trace, const TorchFeed& feed, int32_t device,
                         const TorchSelection& selection,
                         const std::vector<bool>& ignored_failures);

// Passes on and counts what the plan includes.
class TorchSelectedSink : public TorchSink {
 public:
  // `left` must outlive the sink.
  TorchSelectedSink(const analysis::Window& window, uint64_t skip, const std::vector<bool>& left)
      : window_(window), skip_(skip), left_(left) {}

  void OnBoundary(int64_t t_ns) final;
  void OnEvent(const TorchEvent& event) final;

  uint64_t seen() const { return seen_; }  // number of events in the window
  uint64_t selected() const { return selected_; }
  std::optional<int64_t> first_t_ns() const { return first_t_ns_; }

 protected:
  virtual void OnSelected(const TorchEvent& event) = 0;

 private:
  const analysis::Window window_;
  const uint64_t skip_;
  const std::vector<bool>& left_;
  bool inside_ = false, selecting_ = false;
  uint64_t seen_ = 0, selected_ = 0;
  std::optional<int64_t> first_t_ns_;
};

// Runs `model` over the feed up to the end of the window.
void RunTorchModel(const TorchFeed& feed, const analysis::Window& window, TorchModel& model);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SELECTION_H_
