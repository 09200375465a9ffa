// viewer/index/index_builder.h
//
// IndexBuilder: from a Trace to the parts of a ViewIndex, curves first. REQUIRES: times and curves are
// built first, then steps, then everything else.
//
// Thread safety: times and curves may have a thread each, and so may later spaces, each order and each of
// the columns' tasks. Cost: a few passes over rows and events, some bytes a row beside what it
// builds; docs/viewer.md has seconds.

#ifndef GMT_VIEWER_INDEX_INDEX_BUILDER_H_
#define GMT_VIEWER_INDEX_INDEX_BUILDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"
#include "viewer/index/index_parts.h"

namespace gmt::viewer {

class IndexBuilder {
 public:
  // Both must outlive it.
  IndexBuilder(const analysis::Trace& trace, IndexParts& parts) : trace_(trace), parts_(parts) {
    parts_.events = trace.last_step();
  }

  void BuildTimes();
  void BuildCurves();
  void BuildSteps(const analysis::Cycles& cycles) { parts_.axes.SetSteps(cycles.cycles); }
  // What blocks are, by row; each task makes other columns.
  std::vector<std::function<void()>> ColumnTasks();
  void BuildSpaces();
  void BuildOrder(Axis axis);

 private:
  // A device and a heap, and whether it is memory that holds blocks.
  struct Kind {
    int32_t device = 0;
    uint32_t heap = 0;
    bool holds_blocks = false;

    auto operator<=>(const Kind&) const = default;
  };

  uint16_t KindOf(analysis::RowId row);
  void FindKinds();
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

// Categories of rows, and by them what lanes hold. Needs nothing but the parts of kBlocks.
void BuildCategories(const analysis::Trace& trace, const analysis::Categories& categories,
                     IndexParts& parts);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_BUILDER_H_
