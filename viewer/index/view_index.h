// viewer/index/view_index.h
//
// ViewIndex: one recording as timelines are answered from: for each lane the curve of what is live and
// its blocks by duration and size, so that what a window shows is found without looking at what it
// does not show. It needs the Trace while it is built and not after that; a file beside the recording
// can hold it (index_cache.h).
//
//   ViewIndex index;
//   index.Build(examination, mutex, progress);            // a thread of its own; page asks meanwhile
//   index.AddCategories(trace, Categorize(examination));
//   absl::StatusOr<CurveTile> curve = index.SelectCurve({.lane = 0, .axis = Axis::kTime, ...});
//
// Stages   kCurves: lanes(), and curves over events and time
//          kBlocks: blocks, the axis of steps, streams(), threads()
//          kReady: categories
// A question that comes before its stage is answered with kUnavailable and a sentence.
//
// Axes     An event's position never lies before that of an earlier event: where threads noted times
//          out of order, time stands still (axis_map.h).
//
// Thread safety: one thread builds; const methods from any thread at any time, of what its stage has.
// Cost: docs/viewer.md.

#ifndef GMT_VIEWER_INDEX_VIEW_INDEX_H_
#define GMT_VIEWER_INDEX_VIEW_INDEX_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

// The memory of one heap on one device. LaneMeta in protocol.ts.
struct Lane {
  int32_t device = 0;  // analysis::kHostDevice: host memory
  uint32_t heap = 0;   // index of Trace::heaps
  std::string heap_name;
  std::string label;  // for a person
  uint64_t blocks = 0;
  uint64_t peak_bytes = 0, end_bytes = 0;
  uint32_t peak_event = 0;
  std::optional<uint64_t> capacity_bytes;
  bool has_segments = false;
  std::vector<Series> series;
};

// How much work one question may be; what exceeds it is left in the rest.
struct SelectLimits {
  uint32_t blocks = kMaxBlocks;          // items that are blocks
  uint32_t candidates = 60'000;          // blocks that are looked at
  uint64_t column_updates = 15'000'000;  // of the stack's height
};

class IndexBuilder;  // index_builder.h
class IndexParts;    // index_parts.h

class ViewIndex {
 public:
  enum class Stage : uint8_t { kNothing, kCurves, kBlocks, kReady };
  // From one thread at a time. What it does, for a person, and how far it is with all of it (0..1).
  using Progress = std::function<void(std::string_view what, double fraction)>;

  ViewIndex();
  ~ViewIndex();
  ViewIndex(const ViewIndex&) = delete;
  ViewIndex& operator=(const ViewIndex&) = delete;

  // Up to kBlocks: BuildCurves(), then BuildBlocks(). Holds `examining` while it asks `examination` for
  // the steps of the loop, which is for one thread at a time.
  void Build(const analysis::Examination& examination, std::mutex& examining,
             const Progress& progress);
  // Up to kCurves.
  void BuildCurves(const analysis::Trace& trace, const Progress& progress);
  // Up to kBlocks, on as many threads as there are processors. REQUIRES: kCurves, of the same trace.
  void BuildBlocks(const analysis::Examination& examination, const analysis::Cycles& cycles,
                   const Progress& progress);
  // Up to kReady. REQUIRES: kBlocks, of the same trace.
  void AddCategories(const analysis::Trace& trace, const analysis::Categories& categories);

  Stage stage() const { return stage_.load(std::memory_order_acquire); }

  // From kCurves on.
  const std::vector<Lane>& lanes() const;
  uint32_t events() const;
  int64_t end_ns() const;
  // From kBlocks on. Names by code, as tiles have them (names.h); code 0 is kUnknownName.
  const std::vector<std::string>& streams() const;
  const std::vector<std::string>& threads() const;
  bool has_steps() const;

  // Fails with kInvalidArgument where the window makes no sense, kUnavailable where it is too early.
  absl::StatusOr<CurveTile> SelectCurve(const Window& window) const;
  // At which moments SelectCurve() samples its window.
  absl::StatusOr<ColumnMiddles> SelectMiddles(const Window& window) const;
  absl::StatusOr<BlockTile> SelectBlocks(const BlockQuery& query,
                                         const SelectLimits& limits = {}) const;

  // Where an event lies on an axis, and the last event at or before a position. REQUIRES: kCurves;
  // for steps kBlocks and has_steps().
  double PositionOf(Axis axis, uint32_t event) const;
  uint32_t EventAt(Axis axis, double position) const;

  // For index_cache.h.
  const IndexParts& parts() const { return *parts_; }
  static std::unique_ptr<ViewIndex> FromParts(std::unique_ptr<IndexParts> parts);

 private:
  void Reach(Stage stage) { stage_.store(stage, std::memory_order_release); }

  std::unique_ptr<IndexParts> parts_;
  std::unique_ptr<IndexBuilder> builder_;  // between BuildCurves() and BuildBlocks()
  std::atomic<Stage> stage_ = Stage::kNothing;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_VIEW_INDEX_H_
