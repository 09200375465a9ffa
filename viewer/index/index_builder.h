// viewer/index/index_builder.h
//
// IndexBuilder: builds the parts of a ViewIndex from a Trace. REQUIRES: kinds are found first; then
// times, changes and curves are built, and steps before the order of blocks on their axis.
//
// Thread safety: times, changes and curves may be built in parallel; then so may steps, spaces, each
// order and each of the column tasks. Cost: a few passes over rows and events, and a few bytes per row
// beyond the result; docs/viewer.md has timings.

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

namespace gmt::viewer {

class IndexBuilder {
 public:
  // `trace` and `parts` must outlive it.
  IndexBuilder(const analysis::Trace& trace, IndexParts& parts) : trace_(trace), parts_(parts) {
    parts_.events = trace.last_step();
  }

  // Determines the kind of each row and the lanes, in no particular order.
  void FindKinds();
  void BuildTimes();
  // Builds what each event changes.
  void BuildChanges();
  // Builds lanes, their curves and the driver's samples.
  void BuildCurves();
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

  uint16_t KindOf(analysis::RowId row, uint16_t last);
  // Calls visit(event, row, is_death) for each event from the first one on. `row` is kNoRow if the
  // event does not agree with its row, so that curves and blocks agree.
  template <typename Visit>
  void ForEachChange(const Visit& visit) const;
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
