// TraceBuilder (analysis/trace/trace_builder.h): a builder that continues from the state of another
// one.

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {

TraceBuilder TraceBuilder::BeginAgain(std::vector<RowId>* moved) const {
  TraceBuilder next(*this, BeginAgainTag());
  next.TakeFactsOf(*this);
  next.TakeHeldOf(*this, moved);
  next.TakeRolesOf(*this, *moved);
  next.TakePlacesOf(*this, *moved);
  next.TakeRangesOf(*this);
  return next;
}

void TraceBuilder::TakeFactsOf(const TraceBuilder& before) {
  const Trace& old = before.trace_;
  trace_.heaps = old.heaps;
  trace_.devices = old.devices;
  trace_.settings = old.settings;
  trace_.libraries = old.libraries;
  trace_.sources = old.sources;
  trace_.argv = old.argv;
  trace_.rank = old.rank;
  trace_.local_rank = old.local_rank;
  trace_.world_size = old.world_size;
  trace_.unknowns = old.unknowns;
  trace_.unknowns.rows_from_before = 0;
  trace_.losses = old.losses;
  trace_.leak_state = old.leak_state;
  trace_.imported_from = old.imported_from;
  trace_.pid = old.pid;
  trace_.hostname = old.hostname;
  trace_.run_id = old.run_id;
  trace_.start_unix_ns = old.start_unix_ns;
  trace_.end_t_ns = old.end_t_ns;

  last_snapshot_t_ns_ = before.last_snapshot_t_ns_;
  has_events_ = true;  // a part that begins adds nothing new
  states_completions_ = before.states_completions_;
  driver_free_ = before.driver_free_;
  has_blocks_ = before.has_blocks_;
}

void TraceBuilder::TakeHeldOf(const TraceBuilder& before, std::vector<RowId>* moved) {
  const Rows& rows = before.trace_.rows;
  moved->assign(rows.count(), kNoRow);
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.death[row] == kNever) (*moved)[row] = TakeRow(before, row);
  }
}

RowId TraceBuilder::TakeRow(const TraceBuilder& before, RowId row) {
  const Rows& from = before.trace_.rows;
  Rows& rows = trace_.rows;
  const RowId taken = rows.count();
  rows.address.push_back(from.address[row]);
  rows.size.push_back(from.size[row]);
  rows.birth.push_back(0);
  rows.death.push_back(kNever);
  rows.wait.push_back(0);
  rows.stack.push_back(from.stack[row]);
  rows.forward_stack.push_back(from.forward_stack[row]);
  rows.stream.push_back(from.stream[row]);
  rows.thread.push_back(from.thread[row]);
  rows.device.push_back(from.device[row]);
  rows.heap.push_back(from.heap[row]);
  rows.memory.push_back(from.memory[row]);
  rows.flags.push_back(from.flags[row] | kRowFromBefore);
  const auto add = [taken](auto& column, auto value) {
    GrowTo(column, taken);
    column.push_back(value);
  };
  if (const auto requested = from.Requested(row)) add(rows.requested_column, *requested);
  if (const auto pool = from.Pool(row)) add(rows.pool_column, *pool);
  if (const uint32_t name = from.Name(row)) add(rows.name_column, name);
  if (const uint32_t scope = from.Scope(row)) add(rows.scope_column, scope);
  if (const uint32_t dtype = from.Dtype(row)) add(rows.dtype_column, dtype);
  if (const uint32_t shape = from.Shape(row)) add(rows.shape_column, shape);
  if (const uint32_t roles = from.Roles(row)) add(rows.roles_column, static_cast<uint8_t>(roles));
  const bool is_born_here = from.birth[row] != 0;
  if (is_born_here || from.BornBefore(row).has_value()) {
    rows.AddFlags(taken, kRowBornBefore);
    add(rows.born_column,
        is_born_here ? before.trace_.TimeOf(from.birth[row]) : *from.BornBefore(row));
  } else {
    ++trace_.unknowns.rows_from_before;
  }
  counted_.push_back(false);
  if (before.counted_[row]) Count(taken);
  return taken;
}

void TraceBuilder::TakeRolesOf(const TraceBuilder& before, const std::vector<RowId>& moved) {
  for (RoleChange change : before.trace_.role_changes) {
    change.row = moved[change.row];
    change.step = 0;
    if (change.row != kNoRow) trace_.role_changes.push_back(change);
  }
}

// Takes over what is held at which address. A driver free in progress that turns out to be refused
// is not undone, because its row is not here.
void TraceBuilder::TakePlacesOf(const TraceBuilder& before, const std::vector<RowId>& moved) {
  held_ = before.held_.Renumbered(moved, [&](uint32_t index) {
    Mapping mapping = before.trace_.mappings[index];
    mapping.birth = 0;
    if (mapping.physical != kNoRow) mapping.physical = moved[mapping.physical];
    trace_.mappings.push_back(mapping);
    return static_cast<uint32_t>(trace_.mappings.size() - 1);
  });
}

// Takes over the open ranges, which matter for the memory allocated in them.
void TraceBuilder::TakeRangesOf(const TraceBuilder& before) {
  absl::flat_hash_map<uint32_t, uint32_t> moved;
  for (uint32_t index = 0; index < before.trace_.ranges.size(); ++index) {
    if (before.trace_.ranges[index].end != kNever) continue;
    moved[index] = static_cast<uint32_t>(trace_.ranges.size());
    trace_.ranges.push_back(before.trace_.ranges[index]);
    trace_.ranges.back().begin = 0;
  }
  for (const auto& [id, index] : before.open_ranges_) {
    if (const auto open = moved.find(index); open != moved.end()) open_ranges_[id] = open->second;
  }
  for (const auto& [thread, indices] : before.nested_ranges_) {
    for (const uint32_t index : indices) {
      if (const auto open = moved.find(index); open != moved.end())
        nested_ranges_[thread].push_back(open->second);
    }
  }
}

}  // namespace gmt::analysis
