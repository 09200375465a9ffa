// analysis/report/range_totals.h
//
// RangeTotals: what kinds of memory held, allocated and freed in any range of a recording, without
// a walk over its events. The caller divides rows into kinds (by stack, category, ...), and adds
// kinds up to whatever it shows. Sums from the beginning are kept at checkpoints, so that a range
// costs the events between its ends and the checkpoints before them:
//
//   event      0 ....... checkpoint ....... from ............ checkpoint ...... to
//   walked                         -------->                           ------->
//
// Invariants
//   A1  After(step): live bytes are those of the rows with HeldAfter(step); allocations count the
//       births in 1..step.
//   A2  PeakIn() returns the first of the states after from..to with most bytes of the lane.
//
// Ownership: the trace must outlive it. Thread safety: const methods from any thread. Cost: a walk
// over all events to construct it; then at most a spacing of events per call. Memory: 4 bytes per
// row, and at most `max_bytes` of checkpoints.

#ifndef GMT_ANALYSIS_REPORT_RANGE_TOTALS_H_
#define GMT_ANALYSIS_REPORT_RANGE_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

class RangeTotals {
 public:
  static constexpr uint32_t kNoKind = UINT32_MAX;
  static constexpr Step kSpacing = 1 << 17;
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  // `lane`: a group of kinds whose peak can be asked for.
  struct Kinds {
    std::vector<uint32_t> of_rows;  // kNoKind: not counted
    std::vector<uint32_t> lanes;    // by kind
    uint32_t lane_count = 0;
  };
  // `spacing`: events between checkpoints; increased if `max_bytes` would be exceeded.
  RangeTotals(const Trace& trace, Kinds kinds, Step spacing = kSpacing,
              size_t max_bytes = kMaxBytes);

  // What one kind holds, and has allocated since the beginning of the recording.
  struct Sums {
    uint64_t live_bytes = 0;
    uint64_t allocations = 0;
    // Bytes times the time of their free minus that of their allocation, modulo 2^128. Together
    // with the live bytes it gives the bytes times the time that they were held (ByteNs).
    absl::uint128 moment = 0;

    bool operator==(const Sums&) const = default;
  };
  // By kind. REQUIRES: step <= trace.last_step().
  std::vector<Sums> After(Step step) const;

  struct Peak {
    Step step = 0;
    uint64_t bytes = 0;
  };
  // REQUIRES: from <= to <= trace.last_step().
  Peak PeakIn(uint32_t lane, Step from, Step to) const;

  const Kinds& kinds() const { return kinds_; }

 private:
  struct Change {
    uint32_t kind = kNoKind;
    bool is_death = false;
    uint64_t size = 0;
    int64_t t_ns = 0;
  };
  // The steps after a checkpoint up to the next one.
  struct Chunk {
    std::vector<Sums> before;
    struct Lane {
      uint64_t bytes = 0;  // at the checkpoint
      Peak peak;           // among the states after its steps
    };
    std::vector<Lane> lanes;
  };

  Change ChangeOf(Step step) const;
  void SearchPeak(uint32_t lane, Step from, Step to, uint64_t bytes, Peak* peak) const;

  const Trace& trace_;
  const Kinds kinds_;
  Step spacing_;
  std::vector<Chunk> chunks_;
};

// Returns the bytes times the nanoseconds that they were held between two moments.
double ByteNs(const RangeTotals::Sums& before, int64_t before_ns, const RangeTotals::Sums& after,
              int64_t after_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_RANGE_TOTALS_H_
