#include "analysis/report/range_totals.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kKinds = 3;

// Blocks at few addresses, so that some are freed, some replaced without a free, and some frees
// have no allocation.
Trace AnyTrace(std::mt19937& random) {
  EventScript script;
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  script.Alloc(0x10000, 0x100000);
  const uint32_t events = below(120);
  for (uint32_t i = 0; i < events; ++i) {
    const uint64_t address = 0x10000 + below(12) * 0x1000;
    format::Event& event =
        below(2) == 0 ? script.Block(address, 1 + below(0x1000)) : script.FreeBlock(address);
    if (below(3) == 0) event.t_ns -= EventScript::kStep_ns;
  }
  return script.Build();
}

struct SlowSums {
  uint64_t live_bytes = 0, allocations = 0;
  double byte_ns = 0;
};

// Over the rows of a kind, in the range from..to; live bytes are those after `to`.
SlowSums SlowSumsOf(const Trace& trace, const RangeTotals::Kinds& kinds, uint32_t kind, Step from,
                    Step to) {
  SlowSums sums;
  const Rows& rows = trace.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (kinds.of_rows[row] != kind) continue;
    const auto size = static_cast<double>(rows.size[row]);
    if (rows.HeldAfter(row, to)) sums.live_bytes += rows.size[row];
    if (rows.birth[row] > from && rows.birth[row] <= to) ++sums.allocations;
    if (rows.birth[row] > to || rows.death[row] <= from) continue;
    const int64_t begin = trace.TimeOf(std::max(rows.birth[row], from));
    const int64_t end = trace.TimeOf(std::min(rows.death[row], to));
    sums.byte_ns += size * static_cast<double>(end - begin);
  }
  return sums;
}

TEST(RangeTotalsTest, AnyRangeMatchesASumOverAllRows) {
  ForEachSeed(SeedsUpTo(40), [](uint32_t seed) {
    std::mt19937 random(seed);
    const Trace trace = AnyTrace(random);
    const Step last = trace.last_step();
    RangeTotals::Kinds kinds;
    for (RowId row = 0; row < trace.rows.count(); ++row) {
      const auto kind = static_cast<uint32_t>(random() % (kKinds + 1));
      kinds.of_rows.push_back(kind == kKinds ? RangeTotals::kNoKind : kind);
    }
    kinds.lanes = {0, 1, 0};
    kinds.lane_count = 2;
    // With checkpoints from one for each event to one for all of them.
    const RangeTotals totals(trace, kinds, static_cast<Step>(1 + random() % (last + 2)));
    for (int i = 0; i < 30; ++i) {
      const auto from = static_cast<Step>(random() % (uint64_t{last} + 1));
      const auto to = static_cast<Step>(from + random() % (uint64_t{last} + 1 - from));
      const auto before = totals.After(from), after = totals.After(to);
      for (uint32_t kind = 0; kind < kKinds; ++kind) {
        const SlowSums slow = SlowSumsOf(trace, kinds, kind, from, to);
        EXPECT_EQ(after[kind].live_bytes, slow.live_bytes);
        EXPECT_EQ(after[kind].allocations - before[kind].allocations, slow.allocations);
        EXPECT_DOUBLE_EQ(ByteNs(before[kind], trace.TimeOf(from), after[kind], trace.TimeOf(to)),
                         slow.byte_ns);
      }
      for (uint32_t lane = 0; lane < 2; ++lane) {
        RangeTotals::Peak expected{from, 0};
        for (Step step = from; step <= to; ++step) {
          uint64_t bytes = 0;
          for (uint32_t kind = 0; kind < kKinds; ++kind) {
            if (kinds.lanes[kind] == lane) bytes += totals.After(step)[kind].live_bytes;
          }
          if (bytes > expected.bytes) expected = {step, bytes};
        }
        const RangeTotals::Peak peak = totals.PeakIn(lane, from, to);
        EXPECT_EQ(peak.step, expected.step) << "lane " << lane << " of " << from << ".." << to;
        EXPECT_EQ(peak.bytes, expected.bytes);
      }
    }
  });
}

TEST(RangeTotalsTest, CheckpointsAreFewerIfTheyWouldNeedTooMuchMemory) {
  std::mt19937 random(1);
  const Trace trace = AnyTrace(random);
  RangeTotals::Kinds kinds;
  kinds.of_rows.assign(trace.rows.count(), 0);
  kinds.lanes = {0};
  kinds.lane_count = 1;
  const RangeTotals many(trace, kinds, 1), one(trace, kinds, 1, /*max_bytes=*/1);
  for (Step step = 0; step <= trace.last_step(); ++step) {
    EXPECT_TRUE(many.After(step) == one.After(step));
    EXPECT_EQ(many.PeakIn(0, step, trace.last_step()).step,
              one.PeakIn(0, step, trace.last_step()).step);
  }
}

}  // namespace
}  // namespace gmt::analysis
