// interop/torch/torch_selection.h
//
// How much of a recording a snapshot tells: one device or all, a part of the time, and no more
// entries than PyTorch's viewer can show. What is told stays true whatever is left out:
//   newest   The trace begins later. What was there then is in the state that readers go back to,
//            so it shows as memory from before.
//   largest  The trace keeps its whole time. The smallest allocations that ended in it are left out
//            with all their entries, as if they had never been; what is there at the end stays.
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

// The viewer's list of events has an element of the page for each. A trace of so many loads in
// seconds; browsers give up at about ten times as many.
inline constexpr uint64_t kTorchMaxEvents = 100'000;

struct TorchSelection {
  enum class Keep { kNewest, kLargest };

  std::optional<int32_t> device;
  analysis::Window window;
  uint64_t max_events = kTorchMaxEvents;  // of each device; 0: all
  Keep keep = Keep::kNewest;
};

// What of one device is told.
struct TorchPlan {
  int32_t device = 0;
  TorchSegmentFacts facts;
  uint64_t events = 0;     // in the window, before any was left out
  uint64_t skipped = 0;    // the oldest of them, not told
  std::vector<bool> left;  // by row: not told; empty: all rows are
  uint64_t rows_left = 0;
  uint64_t largest_left = 0;  // bytes
};

// `ignored_failures`: by index of Trace::failed.
TorchPlan PlanTorchTrace(const analysis::Trace& trace, const TorchFeed& feed, int32_t device,
                         const TorchSelection& selection,
                         const std::vector<bool>& ignored_failures);

// Passes on what the plan tells, and counts it.
class TorchSelectedSink : public TorchSink {
 public:
  // `left` must outlive the sink.
  TorchSelectedSink(const analysis::Window& window, uint64_t skip, const std::vector<bool>& left)
      : window_(window), skip_(skip), left_(left) {}

  void OnBoundary(int64_t t_ns) final;
  void OnEvent(const TorchEvent& event) final;

  uint64_t seen() const { return seen_; }  // in the window
  uint64_t told() const { return told_; }
  std::optional<int64_t> first_t_ns() const { return first_t_ns_; }

 protected:
  virtual void OnSelected(const TorchEvent& event) = 0;

 private:
  const analysis::Window window_;
  const uint64_t skip_;
  const std::vector<bool>& left_;
  bool inside_ = false, telling_ = false;
  uint64_t seen_ = 0, told_ = 0;
  std::optional<int64_t> first_t_ns_;
};

// Runs `model` over the part of the feed that ends with the window.
void RunTorchModel(const TorchFeed& feed, const analysis::Window& window, TorchModel& model);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SELECTION_H_
