// viewer/index/view_index.h
//
// ViewIndex: the index of one recording that answers timeline queries: for each lane the curve of
// live memory and its blocks by duration and size, so that the content of a window is found without
// visiting what lies outside. It needs the Trace only while it is built. It can be cached in a file
// beside the recording (index_cache.h).
//
//   ViewIndex index;
//   index.Build(examination, mutex, progress);            // in its own thread; queries may run
//                                                         meanwhile
//   index.AddCategories(trace, categories, AliveTexts(examination, categories));
//   absl::StatusOr<CurveTile> curve = index.SelectCurve({.lane = 0, .axis = Axis::kTime, ...});
//
// Stages   kCurves: lanes(), and curves over events and time
//          kBlocks: blocks, the axis of steps, streams(), threads(), dtypes()
//          kReady: categories and roles
// A query that needs a later stage fails with kUnavailable and a message.
//
// Axes     The position of an event never precedes that of an earlier event. If threads recorded
//          times out of order, time stands still (axis_map.h).
//
// Thread safety: one thread builds; const methods from any thread at any time, for the data of the
// current stage. Cost: see docs/viewer.md.

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
#include "analysis/categories/alive_texts.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"
#include "viewer/index/tiles.h"

namespace gmt::viewer {

class IndexBuilder;  // index_builder.h
class IndexParts;    // index_parts.h
class PackedColumn;  // packed_column.h

class ViewIndex {
 public:
  enum class Stage : uint8_t { kNothing, kCurves, kBlocks, kReady };
  // Called by one thread at a time with the current activity, for display, and the overall progress
  // (0..1).
  using Progress = std::function<void(std::string_view what, double fraction)>;

  ViewIndex();
  ~ViewIndex();
  ViewIndex(const ViewIndex&) = delete;
  ViewIndex& operator=(const ViewIndex&) = delete;

  // Returns the steps of the training loop. They must outlive the call that was given it.
  using StepFinder = std::function<const analysis::Cycles&()>;

  // Builds up to kBlocks: BuildCurves(), then BuildBlocks(). Holds `examining` while it obtains the
  // steps from `examination`, which is for one thread at a time.
  void Build(const analysis::Examination& examination, std::mutex& examining,
             const Progress& progress);
  // Builds up to kCurves.
  void BuildCurves(const analysis::Trace& trace, const Progress& progress);
  // Builds up to kBlocks, on as many threads as there are processors. Calls `find_steps` in one of
  // them, once, because only the order of blocks on the axis of steps needs steps. REQUIRES:
  // kCurves, of the same trace.
  void BuildBlocks(const analysis::Examination& examination, const StepFinder& find_steps,
                   const Progress& progress);
  // Builds up to kReady. REQUIRES: kBlocks, of the same trace.
  void AddCategories(const analysis::Trace& trace, const analysis::Categories& categories,
                     const analysis::AliveTexts& alive);

  Stage stage() const { return stage_.load(std::memory_order_acquire); }

  // From kCurves on.
  const std::vector<Lane>& lanes() const;
  // Returns the most that was reserved on the lane's device; nullopt if the lane has no such curve.
  std::optional<uint64_t> PeakReserved(uint32_t lane) const;
  uint32_t events() const;
  int64_t end_ns() const;
  // From kBlocks on. Names by code, as used in tiles (names.h); code 0 is kUnknownName.
  const std::vector<std::string>& streams() const;
  const std::vector<std::string>& threads() const;
  const std::vector<std::string>& dtypes() const;
  bool has_steps() const;

  // Fail with kInvalidArgument if the window is invalid, and with kUnavailable if it is too early.
  absl::StatusOr<CurveTile> SelectCurve(const Window& window) const;
  // Returns the events at which SelectCurve() samples its window.
  absl::StatusOr<ColumnPeaks> SelectPeaks(const Window& window) const;
  absl::StatusOr<BlockTile> SelectBlocks(const BlockQuery& query,
                                         const SelectLimits& limits = {}) const;

  // Return the position of an event on an axis, and the last event at or before a position.
  // REQUIRES: kCurves; for steps kBlocks and has_steps().
  double PositionOf(Axis axis, uint32_t event) const;
  uint32_t EventAt(Axis axis, double position) const;
  // Returns the duration class of a block on an axis, by which blocks are stacked (block_table.h).
  // REQUIRES: as for PositionOf().
  uint8_t DurationClassOf(Axis axis, uint32_t birth, uint32_t death) const;
  // Returns the position of a block in its lane's address space, nullopt if it has none.
  // REQUIRES: kBlocks, and that the row exists.
  std::optional<double> PlaceOf(uint32_t row) const;
  // By row: this position plus 1, 0 for none. REQUIRES: kBlocks.
  const PackedColumn& places() const;

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
