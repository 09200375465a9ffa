#include <algorithm>
#include <utility>
#include <vector>

#include "viewer/index/index_builder.h"

namespace gmt::viewer {

using analysis::RowId;
using analysis::StepRecord;

void BuildCategories(const analysis::Trace& trace, const analysis::Categories& categories,
                     const analysis::AliveTexts& alive, IndexParts& parts) {
  constexpr size_t kCodes = analysis::kCategories;
  const uint32_t rows = std::min(trace.rows.count(), parts.blocks.count());
  const std::vector<EventColumns::Group>& groups = parts.changes.groups;
  const auto code_of = [&](RowId row) { return static_cast<uint8_t>(categories.Of(row).category); };
  PackedColumnBuilder row_column, role_column, event_column;
  for (RowId row = 0; row < rows; ++row) {
    row_column.Add(code_of(row));
    role_column.Add(static_cast<uint8_t>(alive.ReasonOf(row)));
  }

  std::vector<uint64_t> live(parts.lanes.size() * kCodes);
  std::vector<PackedColumnBuilder> at_leaf(live.size());
  // Memory held from before is live at event 0, in the lane given by the event order.
  const BlockOrder& order = parts.blocks.orders[static_cast<size_t>(Axis::kEvent)];
  for (const Cell& cell : order.cells) {
    for (uint32_t i = cell.begin; i < cell.end; ++i) {
      const auto row = static_cast<RowId>(order.rows[i]);
      if (parts.blocks.birth[row] != 0) break;
      live[cell.lane * kCodes + code_of(row)] += parts.blocks.size[row];
    }
  }
  const auto note_leaf = [&] {
    for (size_t i = 0; i < live.size(); ++i) at_leaf[i].Add(live[i]);
  };
  event_column.Add(0);
  note_leaf();
  PackedColumn::Values changes, sizes;
  parts.changes.code.Read(0, changes);
  parts.changes.size.Read(0, sizes);
  for (uint32_t event = 1; event <= parts.events; ++event) {
    if (event % kLeaf == 0) {
      parts.changes.code.Read(event / kLeaf, changes);
      parts.changes.size.Read(event / kLeaf, sizes);
    }
    const uint64_t change = changes[event % kLeaf];
    uint8_t category = 0;
    if (change != 0) {
      category = code_of(trace.steps[event - 1].row);
      const uint32_t lane = groups[(change - 1) / 2].live;
      const uint64_t size = sizes[event % kLeaf];
      if (lane != kNoCurve) {
        uint64_t& bytes = live[lane * kCodes + category];
        bytes = (change - 1) % 2 == 0 ? bytes + size : bytes - size;
      }
    }
    event_column.Add(category);
    if (event % kLeaf == 0) note_leaf();
  }
  parts.row_category = row_column.Finish();
  parts.row_role = role_column.Finish();
  parts.event_category = event_column.Finish();
  parts.categories.resize(parts.lanes.size());
  for (size_t i = 0; i < live.size(); ++i) {
    parts.categories[i / kCodes].at_leaf.push_back(at_leaf[i].Finish());
  }
  parts.category_count = kCodes;
}

}  // namespace gmt::viewer
