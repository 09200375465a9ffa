// Compares what is built from parts of a recording with what is built from all of it at once.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "analysis/testing/long_recording.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/index_builder.h"

namespace gmt::viewer {
namespace {

using analysis::Trace;

// Takes all values of a part of an index.
struct Values {
  std::vector<uint64_t> all;

  void Value(uint64_t value) { all.push_back(value); }
  void Column(const PackedColumn& column) {
    for (uint64_t i = 0; i < column.size(); ++i) all.push_back(column[i]);
  }
  template <typename Parts>
  void Each(Parts& parts) {
    for (auto& part : parts) part.Visit(*this);
  }
};

std::vector<uint64_t> CurvesOf(const Trace& trace, uint32_t events_of_part) {
  IndexParts parts;
  double share = 0;
  IndexBuilder(trace, parts).BuildCurves([&](double done) { share = done; }, events_of_part);
  EXPECT_EQ(share, 1);
  Values values;
  values.Column(parts.changes.code);
  values.Column(parts.changes.size);
  values.Each(parts.curves);
  for (uint32_t event = 0; event <= parts.events; ++event)
    values.Value(static_cast<uint64_t>(parts.axes.PositionOf(Axis::kTime, event)));
  return std::move(values.all);
}

TEST(BuildCurvesTest, PartsMakeNoDifference) {
  ForEachSeed({1, 2, 3}, [](uint32_t seed) {
    const analysis::LongRecording made(30'000, seed);
    Trace trace = made.trace();
    // Some events, and those at the ends of parts, come before earlier ones.
    std::mt19937 random(seed);
    analysis::Steps steps;
    for (size_t i = 0; i < trace.steps.size(); ++i) {
      analysis::StepRecord step = trace.steps[i];
      if (random() % 20 == 0 || i % LaneCurveBuilder::kEventsOfChunk < 3) step.t_ns -= 5000;
      steps.push_back(step);
    }
    trace.steps = std::move(steps);
    const std::vector<uint64_t> whole = CurvesOf(trace, uint32_t{1} << 20);
    EXPECT_GT(whole.size(), 3 * trace.steps.size());
    EXPECT_EQ(CurvesOf(trace, LaneCurveBuilder::kEventsOfChunk), whole);
    EXPECT_EQ(CurvesOf(trace, 3 * LaneCurveBuilder::kEventsOfChunk), whole);
  });
}

}  // namespace
}  // namespace gmt::viewer
