#include "viewer/questions/range_amounts.h"

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "viewer/index/parallel_for.h"
#include "viewer/questions/box_rows.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::RangeTotals;
using analysis::RowId;

std::vector<Amounts> OfKinds(Recording& recording, uint32_t lane, const EventRange& range,
                             uint32_t peak_event, RowFilter& filter) {
  const RowKinds& kinds = recording.kinds();
  const RangeTotals& totals = kinds.totals();
  const auto before = totals.After(range.from), peak = totals.After(peak_event),
             after = totals.After(range.to);
  const analysis::Trace& trace = recording.trace();
  const int64_t from_ns = trace.TimeOf(range.from), to_ns = trace.TimeOf(range.to);
  std::vector<Amounts> by_kind(before.size());
  for (uint32_t kind = 0; kind < by_kind.size(); ++kind) {
    if (kinds.LaneOf(kind) != lane) continue;
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
  RowSums(Recording& recording, const EventRange& range, uint32_t peak)
      : trace_(recording.trace()),
        rows_(recording.rows()),
        kinds_(recording.kinds()),
        range_(range),
        peak_(peak),
        by_kind_(kinds_.examples().size()) {}

  void Add(RowId row) {
    Amounts& amounts = by_kind_[kinds_.Of(row)];
    const uint64_t size = rows_.size[row];
    const bool is_born_here = rows_.birth[row] > range_.from;
    const int64_t begin = trace_.TimeOf(std::max(rows_.birth[row], range_.from));
    const int64_t end = trace_.TimeOf(std::min(rows_.death[row], range_.to));
    if (rows_.HeldAfter(row, peak_)) amounts.bytes += size;
    amounts.byte_ns += static_cast<double>(size) * static_cast<double>(end - begin);
    if (is_born_here) ++amounts.allocations;
    if (rows_.HeldAfter(row, range_.to)) {
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
  const EventRange& range_;
  const uint32_t peak_;
  std::vector<Amounts> by_kind_;
};

std::vector<Amounts> OfRows(Recording& recording, uint32_t lane, const EventRange& range,
                            uint32_t peak, RowFilter& filter) {
  RowSums sums(recording, range, peak);
  const auto add = [&](RowId row, int) { return sums.Add(row), true; };
  Scope scope;
  scope.lane = lane;
  scope.to = range.from;
  ForEachRow(recording, scope, filter, add);
  scope.of = Scope::kBorn;
  scope.from = range.from;
  scope.to = range.to;
  ForEachRow(recording, scope, filter, add);
  return sums.Result();
}

std::vector<Amounts> SumUpRows(Recording& recording, const EventRange& range, uint32_t peak,
                               std::span<const RowId> rows) {
  constexpr size_t kRowsOfTask = size_t{1} << 20;
  std::vector<RowSums> parts(rows.size() / kRowsOfTask + 1, RowSums(recording, range, peak));
  std::vector<std::function<void()>> tasks;
  for (RowSums& part : parts) {
    const auto own = rows.first(std::min(rows.size(), kRowsOfTask));
    rows = rows.subspan(own.size());
    tasks.emplace_back([&part, own] {
      for (const RowId row : own) part.Add(row);
    });
  }
  ParallelFor(tasks, [](size_t) {});
  std::vector<Amounts> sums = parts[0].Result();
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<Amounts> part = parts[i].Result();
    for (size_t kind = 0; kind < sums.size(); ++kind) sums[kind].Add(part[kind]);
  }
  return sums;
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
                                          uint32_t lane, const EventRange& range,
                                          RowFilter& filter) {
  if (range.box) {
    if (index == nullptr) return absl::UnavailableError("blocks are still being sorted");
    auto box = FindBoxRows(recording, *index, lane, range.from, range.to, *range.box);
    if (!box.ok()) return box.status();
    if (!filter.is_empty()) std::erase_if(box->rows, [&](RowId row) { return !filter.Matches(row); });
    return AmountsOfKinds{SumUpRows(recording, range, box->peak, box->rows), box->peak};
  }
  const uint32_t peak = recording.kinds().totals().PeakIn(lane, range.from, range.to).step;
  const auto of = filter.is_by_kind() ? OfKinds : OfRows;
  return AmountsOfKinds{of(recording, lane, range, peak, filter), peak};
}

}  // namespace gmt::viewer
