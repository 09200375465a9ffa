// analysis/trace/row_kinds.h
//
// RowKinds: the properties that decide for which sums a row counts, as one number per row.
//
//   row                  0        1         2         3
//   device, heap         0 driver 0 pytorch 0 pytorch 0 driver
//   flags                segment  -         -         segment
//   number of its kind   0        1         1         0
//
// Millions of rows have a handful of kinds. A walk over all rows or steps therefore looks up what
// it does with a row in a table by kind, instead of reading five columns of the row.
//
// Thread safety: const methods from any thread. Cost: one walk over the rows.

#ifndef GMT_ANALYSIS_TRACE_ROW_KINDS_H_
#define GMT_ANALYSIS_TRACE_ROW_KINDS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/trace/column.h"
#include "analysis/trace/trace.h"
#include "format/kinds.h"

namespace gmt::analysis {

struct RowKind {
  int32_t device = 0;
  uint16_t heap = 0;
  uint16_t flags = 0;       // all RowFlags
  uint8_t memory = 0;       // gmt::Memory
  bool is_in_pool = false;  // in a private pool of its allocator, or in a stream-ordered one

  bool Has(uint16_t flag) const { return (flags & flag) != 0; }
  bool is_region() const { return memory == REGION; }
  bool is_block() const { return heap > kHostHeap && !is_region(); }

  friend bool operator==(const RowKind&, const RowKind&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const RowKind& kind) {
    return H::combine(std::move(hash), kind.device, kind.heap, kind.flags, kind.memory,
                      kind.is_in_pool);
  }
};

class RowKinds {
 public:
  explicit RowKinds(const Trace& trace);

  // The number of a row's kind: an index into all().
  uint32_t NumberOf(RowId row) const { return of_rows_[row]; }
  const RowKind& Of(RowId row) const { return kinds_[NumberOf(row)]; }
  // In the order of their first rows.
  const std::vector<RowKind>& all() const { return kinds_; }
  // The rows of step 0, in order.
  const std::vector<RowId>& from_before() const { return from_before_; }

 private:
  UniformColumn<uint32_t> of_rows_;
  std::vector<RowKind> kinds_;
  std::vector<RowId> from_before_;
};

// A property of kinds, looked up by row.
class KindProperty {
 public:
  // `has`: called once for each kind. REQUIRES: `kinds` outlives this object.
  template <typename Has>
  KindProperty(const RowKinds& kinds, Has has) : kinds_(&kinds) {
    for (const RowKind& kind : kinds.all()) of_kinds_.push_back(has(kind) ? 1 : 0);
  }
  bool Of(RowId row) const { return of_kinds_[kinds_->NumberOf(row)] != 0; }

 private:
  const RowKinds* kinds_;
  std::vector<uint8_t> of_kinds_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_ROW_KINDS_H_
