#include "viewer/questions/range_amounts.h"

#include <algorithm>

#include "viewer/questions/box_rows.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RangeTotals;
using analysis::RowId;

constexpr double kNsPerSecond = 1e9;

std::vector<Amounts> OfKinds(Recording& recording, const RangeQuery& query, uint32_t peak_event,
                             RowFilter& filter) {
  const RowKinds& kinds = recording.kinds();
  const RangeTotals& totals = kinds.totals();
  const auto before = totals.After(query.from), peak = totals.After(peak_event),
             after = totals.After(query.to);
  const analysis::Trace& trace = recording.trace();
  const int64_t from_ns = trace.TimeOf(query.from), to_ns = trace.TimeOf(query.to);
  std::vector<Amounts> by_kind(before.size());
  for (uint32_t kind = 0; kind < by_kind.size(); ++kind) {
    if (kinds.LaneOf(kind) != query.lane) continue;
    Amounts& amounts = by_kind[kind];
    amounts.allocations = after[kind].allocations - before[kind].allocations;
    amounts.is_there = amounts.allocations != 0 || before[kind].live_bytes != 0;
    if (!amounts.is_there || !filter.Matches(kinds.examples()[kind])) {
      amounts = {};
      continue;
    }
    amounts.bytes = peak[kind].live_bytes;
    amounts.byte_ns = ByteNs(before[kind], from_ns, after[kind], to_ns);
    amounts.growth = after[kind].live_bytes - before[kind].live_bytes;
    amounts.end_bytes = after[kind].live_bytes;
  }
  return by_kind;
}

// Adds up single blocks.
class RowSums {
 public:
  RowSums(Recording& recording, const RangeQuery& query, uint32_t peak)
      : trace_(recording.trace()),
        rows_(recording.rows()),
        kinds_(recording.kinds()),
        query_(query),
        peak_(peak),
        by_kind_(kinds_.examples().size()) {}

  void Add(RowId row) {
    Amounts& amounts = by_kind_[kinds_.Of(row)];
    const uint64_t size = rows_.size[row];
    const bool is_born_here = rows_.birth[row] > query_.from;
    const int64_t begin = trace_.TimeOf(std::max(rows_.birth[row], query_.from));
    const int64_t end = trace_.TimeOf(std::min(rows_.death[row], query_.to));
    if (rows_.HeldAfter(row, peak_)) amounts.bytes += size;
    amounts.byte_ns += static_cast<double>(size) * static_cast<double>(end - begin);
    if (is_born_here) ++amounts.allocations;
    if (rows_.HeldAfter(row, query_.to)) {
      amounts.growth += size;
      amounts.end_bytes += size;
    }
    if (!is_born_here) amounts.growth -= size;
    amounts.is_there = amounts.is_there || is_born_here || size != 0;
  }
  std::vector<Amounts> Result() { return std::move(by_kind_); }

 private:
  const analysis::Trace& trace_;
  const analysis::Rows& rows_;
  const RowKinds& kinds_;
  const RangeQuery& query_;
  const uint32_t peak_;
  std::vector<Amounts> by_kind_;
};

std::vector<Amounts> OfRows(Recording& recording, const RangeQuery& query, uint32_t peak,
                            RowFilter& filter) {
  RowSums sums(recording, query, peak);
  const auto add = [&](RowId row, int) { return sums.Add(row), true; };
  Scope scope;
  scope.lane = query.lane;
  scope.to = query.from;
  ForEachRow(recording, scope, filter, add);
  scope.of = Scope::kBorn;
  scope.from = query.from;
  scope.to = query.to;
  ForEachRow(recording, scope, filter, add);
  return sums.Result();
}

}  // namespace

void Amounts::Add(const Amounts& other) {
  bytes += other.bytes;
  byte_ns += other.byte_ns;
  allocations += other.allocations;
  growth += other.growth;
  end_bytes += other.end_bytes;
  is_there = is_there || other.is_there;
}

RangeAmounts Amounts::Result() const {
  return {bytes, byte_ns / kNsPerSecond, allocations, static_cast<int64_t>(growth), end_bytes};
}

absl::StatusOr<AmountsOfKinds> SumUpKinds(Recording& recording, const ViewIndex* index,
                                          const RangeQuery& query, RowFilter& filter) {
  if (query.box) {
    if (index == nullptr) return absl::UnavailableError("blocks are still being sorted");
    const auto box = FindBoxRows(recording, *index, query.lane, query.from, query.to, *query.box);
    if (!box.ok()) return box.status();
    RowSums sums(recording, query, box->peak);
    for (const RowId row : box->rows) {
      if (filter.Matches(row)) sums.Add(row);
    }
    return AmountsOfKinds{sums.Result(), box->peak};
  }
  const uint32_t peak = recording.kinds().totals().PeakIn(query.lane, query.from, query.to).step;
  const auto of = filter.is_by_kind() ? OfKinds : OfRows;
  return AmountsOfKinds{of(recording, query, peak, filter), peak};
}

}  // namespace gmt::viewer
