#include "analysis/trace/row_kinds.h"

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

RowKinds::RowKinds(const Trace& trace) {
  const Rows& rows = trace.rows;
  absl::flat_hash_map<RowKind, uint32_t> numbers;
  RowKind last;
  uint32_t number = 0;
  for (RowId row = 0; row < rows.count(); ++row) {
    RowKind kind;
    kind.device = rows.device[row];
    kind.heap = rows.heap[row];
    kind.flags = rows.flags[row];
    kind.memory = rows.memory[row];
    kind.is_in_pool = rows.Pool(row).value_or(0) != 0;
    if (kinds_.empty() || kind != last) {
      const auto [known, is_new] = numbers.try_emplace(kind, static_cast<uint32_t>(kinds_.size()));
      if (is_new) kinds_.push_back(kind);
      number = known->second;
      last = kind;
    }
    of_rows_.push_back(number);
  }
}

}  // namespace gmt::analysis
