#include "analysis/trace/row_kinds.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

RowKinds::RowKinds(const Trace& trace) {
  const Rows& rows = trace.rows;
  absl::flat_hash_map<RowKind, uint32_t> numbers;
  RowKind last;
  uint32_t number = 0;
  // Most rows are within long runs of equal values.
  for (size_t row = 0; row < rows.count();) {
    RowKind kind;
    kind.device = rows.device[row];
    kind.heap = rows.heap[row];
    kind.flags = rows.flags[row];
    kind.memory = rows.memory[row];
    kind.is_in_pool = rows.Pool(static_cast<RowId>(row)).value_or(0) != 0;
    size_t end = std::min({rows.device.EndOfRun(row), rows.heap.EndOfRun(row),
                           rows.flags.EndOfRun(row), rows.memory.EndOfRun(row)});
    if (kind.Has(kRowHasPool)) end = std::min(end, rows.pool_column.EndOfRun(row));
    if (kinds_.empty() || kind != last) {
      const auto [known, is_new] = numbers.try_emplace(kind, static_cast<uint32_t>(kinds_.size()));
      if (is_new) kinds_.push_back(kind);
      number = known->second;
      last = kind;
    }
    for (; row < end; ++row) {
      of_rows_.push_back(number);
      if (kind.Has(kRowFromBefore)) from_before_.push_back(static_cast<RowId>(row));
    }
  }
}

}  // namespace gmt::analysis
