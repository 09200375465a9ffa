#include "analysis/report/range_totals.h"

#include <algorithm>
#include <utility>

namespace gmt::analysis {
namespace {

// Modulo 2^128, so that negative times need no special case.
absl::uint128 Times(uint64_t bytes, int64_t t_ns) {
  return absl::uint128(bytes) * static_cast<absl::uint128>(absl::int128(t_ns));
}

void AddBirth(uint64_t size, int64_t t_ns, RangeTotals::Sums& sums) {
  sums.live_bytes += size;
  sums.moment -= Times(size, t_ns);
}

}  // namespace

RangeTotals::RangeTotals(const Trace& trace, Kinds kinds, Step spacing, size_t max_bytes)
    : trace_(trace), kinds_(std::move(kinds)), spacing_(spacing) {
  const Step last = trace.last_step();
  const uint64_t bytes = kinds_.lanes.size() * sizeof(Sums);
  const uint64_t most = std::max<uint64_t>(1, max_bytes / std::max<uint64_t>(1, bytes));
  spacing_ = std::max(spacing_, static_cast<Step>(last / most + 1));

  std::vector<Sums> sums(kinds_.lanes.size());
  std::vector<Chunk::Lane> totals(kinds_.lane_count);
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    const uint32_t kind = kinds_.of_rows[row];
    if (kind == kNoKind || !trace.rows.HeldAfter(row, 0)) continue;
    AddBirth(trace.rows.size[row], trace.TimeOf(0), sums[kind]);
    totals[kinds_.lanes[kind]].bytes += trace.rows.size[row];
  }
  for (Step begin = 0;; begin += spacing_) {
    chunks_.push_back({sums, totals});
    const Step end = last - begin < spacing_ ? last : begin + spacing_;
    std::vector<Chunk::Lane>& peaks = chunks_.back().lanes;
    for (Step step = begin + 1; step <= end; ++step) {
      const Change change = ChangeOf(step);
      if (change.kind == kNoKind) continue;
      Sums& of_kind = sums[change.kind];
      const uint32_t lane = kinds_.lanes[change.kind];
      if (change.is_death) {
        of_kind.live_bytes -= change.size;
        of_kind.moment += Times(change.size, change.t_ns);
        totals[lane].bytes -= change.size;
        continue;
      }
      AddBirth(change.size, change.t_ns, of_kind);
      ++of_kind.allocations;
      totals[lane].bytes += change.size;
      if (totals[lane].bytes > peaks[lane].peak.bytes) {
        peaks[lane].peak = {step, totals[lane].bytes};
      }
    }
    if (last - begin < spacing_) break;  // every step has a checkpoint before it
  }
}

// Steps that were undone, or that belong to an earlier or later part of a row's life, change
// nothing.
RangeTotals::Change RangeTotals::ChangeOf(Step step) const {
  const StepRecord record = trace_.steps[step - 1];
  if (record.row == kNoRow) return {};
  const Rows& rows = trace_.rows;
  const Step of_row = record.is_death ? rows.death[record.row] : rows.birth[record.row];
  if (of_row != step) return {};
  return {kinds_.of_rows[record.row], record.is_death, rows.size[record.row], record.t_ns};
}

std::vector<RangeTotals::Sums> RangeTotals::After(Step step) const {
  std::vector<Sums> sums = chunks_[step / spacing_].before;
  for (Step at = step / spacing_ * spacing_ + 1; at <= step; ++at) {
    const Change change = ChangeOf(at);
    if (change.kind == kNoKind) continue;
    Sums& of_kind = sums[change.kind];
    if (change.is_death) {
      of_kind.live_bytes -= change.size;
      of_kind.moment += Times(change.size, change.t_ns);
    } else {
      AddBirth(change.size, change.t_ns, of_kind);
      ++of_kind.allocations;
    }
  }
  return sums;
}

// Searches the states after the steps from..to of one chunk. `bytes`: of the lane at its
// checkpoint.
void RangeTotals::SearchPeak(uint32_t lane, Step from, Step to, uint64_t bytes, Peak* peak) const {
  const Step begin = from / spacing_ * spacing_;
  if (from == begin && bytes > peak->bytes) *peak = {from, bytes};
  for (Step step = begin + 1; step <= to; ++step) {
    const Change change = ChangeOf(step);
    if (change.kind != kNoKind && kinds_.lanes[change.kind] == lane) {
      bytes += change.is_death ? -change.size : change.size;
    }
    if (step >= from && bytes > peak->bytes) *peak = {step, bytes};
  }
}

RangeTotals::Peak RangeTotals::PeakIn(uint32_t lane, Step from, Step to) const {
  Peak peak{from, 0};
  for (Step at = from;;) {
    const Chunk::Lane& chunk = chunks_[at / spacing_].lanes[lane];
    const Step begin = at / spacing_ * spacing_;
    const bool is_last = to - begin < spacing_;
    if (at == begin && !is_last) {
      if (chunk.bytes > peak.bytes) peak = {begin, chunk.bytes};
      if (chunk.peak.bytes > peak.bytes) peak = chunk.peak;
    } else {
      SearchPeak(lane, at, is_last ? to : begin + spacing_ - 1, chunk.bytes, &peak);
    }
    if (is_last) return peak;
    at = begin + spacing_;
  }
}

double ByteNs(const RangeTotals::Sums& before, int64_t before_ns, const RangeTotals::Sums& after,
              int64_t after_ns) {
  const absl::uint128 held = Times(after.live_bytes, after_ns) + after.moment -
                             Times(before.live_bytes, before_ns) - before.moment;
  return static_cast<double>(static_cast<absl::int128>(held));
}

}  // namespace gmt::analysis
