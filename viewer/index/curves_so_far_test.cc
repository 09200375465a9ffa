#include "viewer/index/curves_so_far.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/live_columns.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/lane_names.h"

namespace gmt::viewer {
namespace {

using analysis::EventScript;
using analysis::RowId;
using analysis::Trace;

// Returns blocks, segments and pinned memory of two devices, some of them held from before the
// recording.
EventScript RandomScript(uint32_t seed, int events) {
  std::mt19937 random(seed);
  const auto pick = [&](uint64_t count) { return random() % count; };
  EventScript script;
  std::set<uint64_t> held;
  for (int i = 0; i < events; ++i) {
    const uint64_t address = 0x100000 * (1 + pick(60));
    const auto device = static_cast<uint32_t>(pick(2));
    if (pick(50) == 0) {
      script.FreeBlock(0x100000 * (1000 + pick(9))).size = 512 * (1 + pick(9));  // an unknown block
    } else if (pick(9) == 0) {
      pick(2) == 0 ? script.Pinned(address, 4096 * (1 + pick(9))) : script.FreePinned(address);
    } else if (held.insert(address).second) {
      script.Block(address, 512 * (1 + pick(4000))).device = device;
    } else {
      held.erase(address);
      script.FreeBlock(address).device = device;
    }
  }
  return script;
}

// Returns what each lane holds after each event, by visiting every row; [0]: before the first
// event.
std::map<std::pair<int32_t, uint32_t>, std::vector<uint64_t>> HeldAfter(const Trace& trace) {
  std::map<std::pair<int32_t, uint32_t>, std::vector<uint64_t>> held;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    auto& lane = held[{trace.rows.device[row], trace.rows.heap[row]}];
    lane.resize(trace.steps.size() + 1);
    const size_t end = std::min<size_t>(trace.rows.death[row], trace.steps.size() + 1);
    for (size_t event = trace.rows.birth[row]; event < end; ++event)
      lane[event] += trace.rows.size[row];
  }
  return held;
}

class PiecewiseRecording {
 public:
  explicit PiecewiseRecording(EventScript script)
      : script_(std::move(script)), builder_(script_.definitions()) {}

  // Adds all events, in pieces of at most `most` events.
  void AddInPieces(size_t most) {
    std::mt19937 random(7);
    const auto& events = script_.events();
    for (size_t at = 0; at < events.size();) {
      const size_t count = std::min<size_t>(1 + random() % most, events.size() - at);
      format::EventBatch batch;
      std::copy_n(events.begin() + static_cast<std::ptrdiff_t>(at), count,
                  std::back_inserter(batch.events));
      builder_.OnEvents(batch).IgnoreError();
      curves_.Take(builder_.so_far());
      at += count;
    }
  }

  const CurvesSoFar& curves() const { return curves_; }
  Trace Build() { return std::move(builder_).Build(); }

 private:
  EventScript script_;
  analysis::TraceBuilder builder_;
  CurvesSoFar curves_;
};

class CurvesSoFarOracleTest : public testing::TestWithParam<int> {};

TEST_P(CurvesSoFarOracleTest, MatchASumOverAllRows) {
  ForEachSeed({1}, [](uint32_t seed) {
    PiecewiseRecording recording(RandomScript(seed, GetParam()));
    recording.AddInPieces(1000);
    const auto lanes = recording.curves().Lanes(100);
    const Trace trace = recording.Build();
    const auto held = HeldAfter(trace);
    ASSERT_EQ(lanes.size(), held.size());

    size_t stretch = 64;
    while (trace.steps.size() / stretch >= CurvesSoFar::kMaxStretches) stretch *= 2;
    std::multiset<std::pair<uint64_t, std::vector<uint64_t>>> expected, found;
    for (const auto& [place, bytes] : held) {
      std::vector<uint64_t> most;
      for (size_t first = 0; first < bytes.size(); first += stretch) {
        const size_t last = std::min(first + stretch, bytes.size() - 1);
        most.push_back(*std::max_element(&bytes[first], &bytes[last] + 1));
      }
      expected.emplace(bytes.back(), most);
    }
    for (const CurvesSoFar::Lane& lane : lanes) found.emplace(lane.bytes, lane.most);
    EXPECT_EQ(found, expected);
  });
}

INSTANTIATE_TEST_SUITE_P(OfRandomRecordings, CurvesSoFarOracleTest,
                         testing::Values(1, 60, 64, 65, 700, 32'767, 32'768, 33'000, 70'000));

TEST(CurvesSoFarTest, BlocksOfTheMainDeviceComeFirst) {
  EventScript script;
  script.Alloc(0x1000, 10);
  script.Alloc(0x2000, 1000).device = 1;
  script.Block(0x2000, 900).device = 1;
  script.Pinned(0x3000, 5000);
  const Trace trace = script.Build();
  CurvesSoFar curves;
  curves.Take(trace);
  std::vector<std::string> labels;
  for (const auto& lane : curves.Lanes(3)) labels.push_back(lane.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"GPU 1 · PyTorch blocks", "GPU 1 · driver memory",
                                              "GPU 0 · driver memory"}));
}

TEST(CurvesSoFarTest, ExcessiveDevicesAreLeftOut) {
  EventScript script;
  for (uint32_t device = 0; device < 1000; ++device) {
    script.Alloc(0x1000, 512).device = device;
    script.Free(0x1000).device = device;
  }
  CurvesSoFar curves;
  curves.Take(script.Build());
  EXPECT_EQ(curves.Lanes(1000).size(), kMaxLanes);
}

TEST(CurvesSoFarTest, AbsurdSizesAreHarmless) {
  EventScript script;
  for (uint64_t i = 1; i < 200; ++i) script.Block(i << 12, UINT64_MAX / 3);
  CurvesSoFar curves;
  curves.Take(script.Build());
  EXPECT_EQ(curves.Lanes(1).at(0).most.size(), 4u);
}

TEST(CurvesSoFarTest, EmptyTraceHasNoLanes) {
  CurvesSoFar curves;
  curves.Take({});
  EXPECT_TRUE(curves.Lanes(4).empty());
}

TEST(CurvesSoFarTest, BlockInASnapshotAheadOfItsEventCountsOnce) {
  EventScript script;
  script.Alloc(0x1000, 512);
  const std::vector<format::Event> held = {script.events().front()};
  Snapshot snapshot;
  snapshot.set_t_ns(5 * EventScript::kStep_ns);
  *snapshot.mutable_live() = format::EncodeLive(held);
  analysis::TraceBuilder builder(script.definitions());
  CurvesSoFar curves;
  ASSERT_TRUE(builder.OnSnapshot(snapshot).ok());
  curves.Take(builder.so_far());
  EXPECT_EQ(curves.Lanes(1).at(0).bytes, 512u);
  ASSERT_TRUE(builder.OnEvents(script.batch()).ok());
  curves.Take(builder.so_far());
  EXPECT_EQ(curves.Lanes(1).at(0).bytes, 512u);
}

}  // namespace
}  // namespace gmt::viewer
