#include "viewer/questions/range_amounts.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
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

// Adds up the blocks in a box, on several threads. Sums are whole numbers, so that they do not
// depend on the order.
class BoxSums : public BoxTaker {
 public:
  BoxSums(Recording& recording, const BoxRange& range)
      : trace_(recording.trace()), kinds_(recording.kinds()), range_(range) {}

  void Take(std::span<const RowId> rows) override {
    std::unique_ptr<Sums> sums = Acquire();
    const analysis::Rows& all = trace_.rows;
    const uint32_t from = range_.from, to = range_.to;
    for (const RowId row : rows) {
      const uint32_t birth = all.birth[row];
      const uint64_t bytes = all.size[row];
      const int64_t held_ns =  // times may go back a little
          trace_.TimeOf(std::min(all.death[row], to)) - trace_.TimeOf(std::max(birth, from));
      Sum& sum = (*sums)[kinds_.Of(row)];
      birth > from ? ++sum.allocations : sum.begin_bytes += bytes;
      sum.byte_ns += absl::int128(bytes) * held_ns;
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(sums));
  }
  // What is held at the end and at the peak is not in it.
  std::vector<Amounts> Result() const {
    std::vector<Amounts> by_kind(kinds_.examples().size());
    for (size_t kind = 0; kind < by_kind.size(); ++kind) {
      Sum sum;
      for (const auto& sums : idle_) {
        sum.allocations += (*sums)[kind].allocations;
        sum.begin_bytes += (*sums)[kind].begin_bytes;
        sum.byte_ns += (*sums)[kind].byte_ns;
      }
      by_kind[kind].allocations = sum.allocations;
      by_kind[kind].growth = uint64_t{0} - sum.begin_bytes;
      by_kind[kind].byte_ns = static_cast<double>(sum.byte_ns);
      by_kind[kind].is_there = sum.allocations != 0 || sum.begin_bytes != 0;
    }
    return by_kind;
  }

 private:
  struct Sum {
    uint64_t allocations = 0, begin_bytes = 0;
    absl::int128 byte_ns = 0;
  };
  using Sums = std::vector<Sum>;  // by kind

  std::unique_ptr<Sums> Acquire() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Sums>(kinds_.examples().size());
    std::unique_ptr<Sums> sums = std::move(idle_.back());
    idle_.pop_back();
    return sums;
  }

  const analysis::Trace& trace_;
  const RowKinds& kinds_;
  const BoxRange& range_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Sums>> idle_;  // as many as there were threads
};

// REQUIRES: filter.is_by_kind().
absl::StatusOr<AmountsOfKinds> OfBoxByAddress(Recording& recording, const ViewIndex& index,
                                              const BoxRange& range, RowFilter& filter) {
  const analysis::Trace& trace = recording.trace();
  const RowKinds& kinds = recording.kinds();
  BoxSums sums(recording, range);
  const auto peak = TakeBoxRows(recording, index, range, sums);
  if (!peak.ok()) return peak.status();
  std::vector<Amounts> by_kind = sums.Result();
  for (const RowId row : HeldInBox(recording, index, range, *peak))
    by_kind[kinds.Of(row)].bytes += trace.rows.size[row];
  for (const RowId row : HeldInBox(recording, index, range, range.to)) {
    by_kind[kinds.Of(row)].growth += trace.rows.size[row];
    by_kind[kinds.Of(row)].end_bytes += trace.rows.size[row];
  }
  for (size_t kind = 0; kind < by_kind.size(); ++kind) {
    if (by_kind[kind].is_there && !filter.Matches(kinds.examples()[kind])) by_kind[kind] = {};
  }
  return AmountsOfKinds{std::move(by_kind), *peak};
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
    const BoxRange of = {lane, range.from, range.to, *range.box};
    if (of.box.layout == Layout::kAddress && filter.is_by_kind())
      return OfBoxByAddress(recording, *index, of, filter);
    const auto box = FindBoxRows(recording, *index, of);
    if (!box.ok()) return box.status();
    RowSums sums(recording, range, box->peak);
    for (const RowId row : box->rows) {
      if (filter.Matches(row)) sums.Add(row);
    }
    return AmountsOfKinds{sums.Result(), box->peak};
  }
  const uint32_t peak = recording.kinds().totals().PeakIn(lane, range.from, range.to).step;
  const auto of = filter.is_by_kind() ? OfKinds : OfRows;
  return AmountsOfKinds{of(recording, lane, range, peak, filter), peak};
}

}  // namespace gmt::viewer
