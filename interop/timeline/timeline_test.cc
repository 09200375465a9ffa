#include "interop/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "interop/timeline/chrome_trace.h"
#include "interop/timeline/perfetto_trace.h"
#include "interop/timeline/timeline_counters.h"
#include "proto/perfetto.pb.h"

namespace gmt::interop {
namespace {

using analysis::EventScript;
using ::testing::ElementsAre;

class TimelineTest : public ::testing::Test {
 protected:
  void Build() {
    trace_ = script_.Build();
    const analysis::Examination examination(trace_, script_.definitions());
    timeline_ = MakeTimeline(examination, Categorize(examination));
  }
  std::vector<uint64_t> BytesOf(const std::string& counter) {
    std::vector<uint64_t> bytes;
    for (const Timeline::Counter& one : timeline_.counters) {
      if (one.name != counter) continue;
      for (const Timeline::Point& point : one.points) bytes.push_back(point.bytes);
    }
    return bytes;
  }
  const Timeline::Track* TrackNamed(const std::string& name, size_t number = 0) {
    for (const Timeline::Track& track : timeline_.tracks) {
      if (track.name == name && number-- == 0) return &track;
    }
    return nullptr;
  }

  EventScript script_;
  analysis::Trace trace_;
  Timeline timeline_;
};

perfetto::Trace Written(const analysis::Trace& trace, const format::Definitions& definitions,
                        const Timeline& timeline) {
  std::stringstream out;
  WritePerfettoTrace(analysis::Examination(trace, definitions), timeline, out);
  perfetto::Trace file;
  EXPECT_TRUE(file.ParseFromString(out.str()));
  return file;
}

TEST_F(TimelineTest, CountersFollowHeapsAndWhatFrameworksReserve) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment"});
  script_.Block(0x100000000, 2 * kMiB, {"forward"});
  script_.Block(0x100200000, kMiB, {"forward"});
  script_.FreeBlock(0x100000000);
  script_.Sample(9 * kMiB, 80 * kMiB).set_source("nvml");
  Build();
  EXPECT_THAT(BytesOf("cuda:0 driver live"), ElementsAre(8 * kMiB));
  EXPECT_THAT(BytesOf("cuda:0 reserved"), ElementsAre(8 * kMiB));
  EXPECT_THAT(BytesOf("cuda:0 pytorch live"), ElementsAre(2 * kMiB, 3 * kMiB, kMiB));
  EXPECT_THAT(BytesOf("cuda:0 used (nvml)"), ElementsAre(9 * kMiB));
}

TEST_F(TimelineTest, SampleOfFreeMemoryAloneIsNotOnTheCurveOfWhatIsUsed) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment"});
  script_.Sample(9 * kMiB, 80 * kMiB).set_source("cudaMemGetInfo");
  gmt::Sample& sample = script_.Sample(0, 0);
  sample.set_source("cudaMemGetInfo");
  sample.set_free_bytes(kMiB);
  Build();
  EXPECT_THAT(BytesOf("cuda:0 used (cudaMemGetInfo)"), ElementsAre(9 * kMiB));
}

TEST_F(TimelineTest, ThinnedCurveKeepsItsPeakAndItsEnds) {
  std::vector<Timeline::Point> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({i, static_cast<uint64_t>(i % 7)});
  points[5432].bytes = 99;
  points.back().bytes = 3;
  EXPECT_TRUE(ThinOut(points, 100));
  EXPECT_LE(points.size(), 100u);
  EXPECT_EQ(points.front().t_ns, 0);
  EXPECT_EQ(points.back().bytes, 3u);
  const auto is_peak = [](const auto& point) { return point.t_ns == 5432 && point.bytes == 99; };
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), is_peak));
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(),
                             [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; }));
  EXPECT_FALSE(ThinOut(points, 100));
}

TEST_F(TimelineTest, RangesThatDoNotNestGoToFurtherTracks) {
  script_.Begin("outer", 1).thread = 7;
  script_.Begin("inner", 2).thread = 7;
  script_.End("inner", 2).thread = 7;
  script_.Begin("crossing", 3).thread = 7;
  script_.End("outer", 1).thread = 7;
  script_.End("crossing", 3).thread = 7;
  script_.Mark("step", 4).thread = 7;
  script_.Alloc(0x1000, kMiB);
  Build();
  const Timeline::Track* first = TrackNamed("thread 7");
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->slices.size(), 2u);
  EXPECT_EQ(first->slices[0].name, "outer");
  EXPECT_EQ(first->slices[1].name, "inner");
  ASSERT_EQ(first->instants.size(), 1u);
  EXPECT_EQ(first->instants[0].name, "step 4");
  const Timeline::Track* second = TrackNamed("thread 7", 1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->slices[0].name, "crossing");
}

TEST_F(TimelineTest, FailedAllocationAndSnapshotAreInstants) {
  script_.Alloc(0x1000, kMiB);
  script_.Failed(3 * kGiB);
  script_.SnapshotTaken("oom-1");
  Build();
  ASSERT_NE(TrackNamed("cuda:0 failures"), nullptr);
  EXPECT_EQ(TrackNamed("cuda:0 failures")->instants[0].name,
            "out of memory: 3.00 GiB requested (driver)");
  ASSERT_NE(TrackNamed("snapshots and gaps"), nullptr);
  EXPECT_EQ(TrackNamed("snapshots and gaps")->instants[0].name, "snapshot oom-1");
}

TEST_F(TimelineTest, PerfettoSlicesEndInnerFirstAndCountersHaveTracks) {
  script_.Begin("outer", 1).thread = 7;
  script_.Begin("inner", 2).thread = 7;
  script_.End("inner", 2).thread = 7;
  script_.End("outer", 1).thread = 7;
  script_.Alloc(0x1000, kMiB);
  Build();
  trace_.start_unix_ns = 1'700'000'000'000'000'000;
  const perfetto::Trace file = Written(trace_, script_.definitions(), timeline_);
  std::vector<std::string> slices;
  std::vector<int64_t> values;
  uint64_t last_time = 0;
  for (const perfetto::TracePacket& packet : file.packet()) {
    const perfetto::TrackEvent& event = packet.track_event();
    if (event.type() == perfetto::TrackEvent::TYPE_COUNTER) values.push_back(event.counter_value());
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) slices.push_back(event.name());
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      slices.push_back("end");
      EXPECT_GE(packet.timestamp(), last_time);
      last_time = packet.timestamp();
    }
  }
  EXPECT_THAT(slices, ElementsAre("outer", "inner", "end", "end"));
  EXPECT_GT(last_time, 1'700'000'000'000'000'000u);
  EXPECT_THAT(values, ::testing::Each(static_cast<int64_t>(kMiB)));
  EXPECT_EQ(values.size(), 2u);  // the heap and the category
}

TEST_F(TimelineTest, ForwardAndBackwardPassesAreLinkedInAnyOrderOfTracks) {
  script_.Alloc(0x1000, kMiB);
  Build();
  timeline_.counters.clear();
  timeline_.tracks = {{"phases", std::nullopt, {{"backward", 20, 30, 1, true}}, {}},
                      {"phases", std::nullopt, {{"forward", 10, 20, 1, false}}, {}}};
  trace_.pid = 7;
  std::stringstream chrome;
  const perfetto::Trace file = Written(trace_, script_.definitions(), timeline_);
  std::vector<uint64_t> begins, ends;
  for (const perfetto::TracePacket& packet : file.packet()) {
    const perfetto::TrackEvent& event = packet.track_event();
    for (const uint64_t id : event.flow_ids()) {
      EXPECT_EQ(event.name(), "forward");
      begins.push_back(id);
    }
    for (const uint64_t id : event.terminating_flow_ids()) {
      EXPECT_EQ(event.name(), "backward");
      ends.push_back(id);
    }
  }
  EXPECT_THAT(begins, ElementsAre((uint64_t{7} << 32) + 1));
  EXPECT_EQ(begins, ends);
  WriteChromeTrace(analysis::Examination(trace_, script_.definitions()), timeline_, chrome);
  std::vector<std::string> phases;
  const nlohmann::json written = nlohmann::json::parse(chrome.str());
  for (const auto& event : written["traceEvents"]) {
    phases.push_back(event["ph"]);
    if (event["ph"] == "s") {
      EXPECT_NEAR(event["ts"].get<double>() * 1000, 10, 1);
    }
    if (event["ph"] == "f") {
      EXPECT_EQ(event["bp"], "e");
    }
  }
  EXPECT_THAT(phases, ElementsAre("X", "f", "X", "s"));
}

TEST_F(TimelineTest, HeapsAreDumpedAtDifferentTimesInSequencesOfTheirOwn) {
  script_.Alloc(0x1000, kMiB, {"own", "main"});
  script_.Alloc(0x2000, kMiB, {"own", "main"}).device = 1;
  script_.Free(0x1000);
  Build();
  std::map<uint32_t, std::vector<perfetto::ProfilePacket>> dumps;  // by sequence
  std::set<uint64_t> times;
  const perfetto::Trace file = Written(trace_, script_.definitions(), timeline_);
  for (const auto& packet : file.packet()) {
    if (!packet.has_profile_packet()) continue;
    dumps[packet.trusted_packet_sequence_id()].push_back(packet.profile_packet());
    EXPECT_TRUE(times.insert(packet.profile_packet().process_dumps(0).timestamp()).second);
  }
  ASSERT_EQ(dumps.size(), 2u);
  const std::vector<perfetto::ProfilePacket>& first = dumps.begin()->second;
  ASSERT_EQ(first.size(), 2u);  // the peak and the end
  EXPECT_EQ(first[0].process_dumps(0).heap_name(), "cuda.device0");
  EXPECT_EQ(first[0].process_dumps(0).samples(0).self_freed(), 0u);
  EXPECT_EQ(first[1].index(), 1u);
  EXPECT_EQ(first[1].process_dumps(0).samples(0).self_allocated(), kMiB);
  EXPECT_EQ(first[1].process_dumps(0).samples(0).self_freed(), kMiB);
  // The other device's allocation is at its peak until the end, which is not a change.
  EXPECT_EQ(dumps.rbegin()->second.back().process_dumps(0).samples_size(), 0);
}

TEST_F(TimelineTest, StacksThatDifferInAllocatorFramesAreOneOfAHeapProfile) {
  script_.Alloc(0x1000, kMiB, {"cudaMalloc", "own", "main"});
  script_.Alloc(0x200000, kMiB, {"cudaMallocAsync", "own", "main"});
  script_.Alloc(0x400000, kMiB, {"other", "main"});
  Build();
  std::map<uint64_t, std::string> functions;
  std::vector<std::string> stacks;
  std::map<uint64_t, uint64_t> function_of;
  const perfetto::Trace file = Written(trace_, script_.definitions(), timeline_);
  for (const auto& packet : file.packet()) {
    for (const auto& name : packet.interned_data().function_names())
      functions[name.iid()] = name.str();
    for (const auto& frame : packet.interned_data().frames())
      function_of[frame.iid()] = frame.function_name_id();
    for (const auto& stack : packet.interned_data().callstacks()) {
      std::string& text = stacks.emplace_back();
      for (const uint64_t frame : stack.frame_ids()) text += functions[function_of[frame]] + " ";
    }
  }
  EXPECT_THAT(stacks, ::testing::UnorderedElementsAre("main own ", "main other "));
}

TEST_F(TimelineTest, ChromeTimesAreThoseSince1970) {
  script_.Alloc(0x1000, kMiB);
  Build();
  trace_.start_unix_ns = 1'700'000'000'123'456'789;
  std::stringstream out;
  WriteChromeTrace(analysis::Examination(trace_, script_.definitions()), timeline_, out);
  const nlohmann::json file = nlohmann::json::parse(out.str());
  const auto& event = file["traceEvents"][0];
  EXPECT_EQ(event["ph"], "C");
  EXPECT_EQ(event["args"]["bytes"], kMiB);
  const int64_t base = file["baseTimeNanoseconds"];
  EXPECT_EQ(base, int64_t{1696186170} * 1'000'000'000);
  const double unix_ns = static_cast<double>(base) + event["ts"].get<double>() * 1000;
  EXPECT_NEAR(unix_ns, static_cast<double>(trace_.start_unix_ns + trace_.steps.TimeOf(0)), 1000);
}

TEST_F(TimelineTest, TimesBeforeTheStartAndRangesThatEndBeforeTheyBeginAreValid) {
  script_.Begin("backwards", 1).t_ns = 5'000'500;
  script_.End("backwards", 1).t_ns = 2'000'000;
  script_.Mark("early", 1).t_ns = -1'500;
  script_.Alloc(0x1000, kMiB).t_ns = -5;
  script_.Alloc(0x2000, kMiB);
  Build();
  trace_.start_unix_ns = 0;
  std::stringstream out;
  WriteChromeTrace(analysis::Examination(trace_, script_.definitions()), timeline_, out);
  std::map<std::string, nlohmann::json> events;
  const nlohmann::json chrome = nlohmann::json::parse(out.str());
  for (const auto& event : chrome["traceEvents"]) events.emplace(event["name"], event);
  EXPECT_EQ(events.at("early 1")["ts"], -1.5);
  EXPECT_EQ(events.at("backwards")["ts"], 5000.5);
  EXPECT_EQ(events.at("backwards")["dur"], 0.0);
  EXPECT_EQ(events.at("cuda:0 driver live")["ts"], -0.005);
  const perfetto::Trace file = Written(trace_, script_.definitions(), timeline_);
  for (const auto& packet : file.packet()) EXPECT_LE(packet.timestamp(), 5'000'500u);
}

}  // namespace
}  // namespace gmt::interop
