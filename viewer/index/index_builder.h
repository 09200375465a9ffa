// viewer/index/index_builder.h
//
// IndexBuilder: builds the parts of a ViewIndex from a Trace. REQUIRES: times and curves are built
// first, and steps before the order of blocks on their axis.
//
// Thread safety: steps, spaces, each order and each of the column tasks may be built in parallel.
// Cost: a few passes over rows and events, and a few bytes per row beyond the result;
// docs/viewer.md has timings.

#ifndef GMT_VIEWER_INDEX_INDEX_BUILDER_H_
#define GMT_VIEWER_INDEX_INDEX_BUILDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analysis/categories/alive_texts.h"
#include "analysis/categories/categories.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "viewer/index/index_parts.h"
#include "viewer/index/lane_curve.h"
#include "viewer/index/packed_column.h"

namespace gmt::viewer {

class IndexBuilder {
 public:
  // `trace` and `parts` must outlive it.
  IndexBuilder(const analysis::Trace& trace, IndexParts& parts) : trace_(trace), parts_(parts) {
    parts_.events = trace.last_step();
  }

  // Builds times, lanes, their curves, what each event changes, and the driver's samples, on all
  // processors. `done` is called with the share that has been done, by one thread at a time.
  // `events_of_part`: how many events a thread takes at a time, a multiple of
  // LaneCurveBuilder::kEventsOfChunk.
  void BuildCurves(const std::function<void(double)>& done,
                   uint32_t events_of_part = kEventsOfCurvePart);
  void BuildSteps(const analysis::Cycles& cycles) { parts_.axes.SetSteps(cycles.cycles); }
  // Returns tasks that build the attributes of blocks, by row; each task writes different columns.
  // `definitions`: of the trace; must outlive the tasks.
  std::vector<std::function<void()>> ColumnTasks(const format::Definitions& definitions);
  void BuildSpaces();
  void BuildOrder(Axis axis);

 private:
  // A device and a heap, and whether the memory holds blocks.
  struct Kind {
    int32_t device = 0;
    uint32_t heap = 0;
    bool holds_blocks = false;

    auto operator<=>(const Kind&) const = default;
  };

  static constexpr uint32_t kEventsOfCurvePart = uint32_t{1} << 20;

  // What some events add to the columns of all events, and to the curves.
  struct CurvePart {
    uint32_t begin = 0, end = 0;
    PackedColumnBuilder times, codes, sizes;
    int64_t first_ns = 0, last_ns = 0;
    std::vector<LaneCurveBuilder> curves;
  };
  // Memory that is held before the first event.
  struct Start {
    uint64_t bytes = 0, blocks = 0;
  };

  uint16_t KindOf(analysis::RowId row, uint16_t last);
  void FindKinds();
  size_t GroupCurves(std::map<int32_t, uint32_t>* reserved);
  void AddStarts(std::vector<Start>& starts) const;
  int64_t AddTimes(uint32_t begin, uint32_t end, int64_t latest, PackedColumnBuilder& times) const;
  void BuildPart(CurvePart& part) const;
  static PackedColumn JoinColumn(std::vector<CurvePart>& parts,
                                 PackedColumnBuilder CurvePart::*column);
  void JoinTimes(std::vector<CurvePart>& parts);
  void JoinCurves(const std::vector<Start>& starts, const std::vector<CurvePart>& parts);
  void OrderLanes();
  void FindSamples();
  void AddSegments(const Lane& lane, AddressSpaces& spaces) const;
  std::vector<uint64_t> MappedAt() const;

  const analysis::Trace& trace_;
  IndexParts& parts_;
  std::vector<Kind> kinds_;
  std::map<Kind, uint16_t> kind_numbers_;
  std::vector<uint16_t> kind_of_row_;
  std::vector<uint32_t> lane_of_kind_;
};

// Builds the categories and roles of rows, and the bytes per category of lanes. Uses only what
// exists from kBlocks on.
void BuildCategories(const analysis::Trace& trace, const analysis::Categories& categories,
                     const analysis::AliveTexts& alive, IndexParts& parts);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_BUILDER_H_
