#include "analysis/whatif/replay.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"
#include "analysis/trace/memory_event.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kA = uint64_t{1} << 40, kB = uint64_t{2} << 40, kC = uint64_t{3} << 40;

class AllocatorReplayTest : public ::testing::Test {
 protected:
  absl::StatusOr<AllocatorHistory> History(const std::vector<NamedText>& settings = {},
                                           const std::vector<NamedText>& libraries = {}) {
    trace_ = script_.Build();
    trace_.settings = settings;
    trace_.libraries = libraries;
    trace_.devices = {{0, "GPU", 24 * kGiB}};
    const Examination examination(trace_, script_.definitions());
    return HistoryOf(examination, 0);
  }
  // A block in a segment that it fills, and is alone in.
  void Segment(uint64_t address, uint64_t bytes) {
    script_.Alloc(address, bytes);
    script_.Block(address, bytes);
  }
  // 80 MiB are reserved, 40 of them cached, when 60 more are requested.
  void CacheOneOfTwoSegments() {
    Segment(kA, 40 * kMiB);
    Segment(kB, 40 * kMiB);
    script_.FreeBlock(kA);
    Segment(kC, 60 * kMiB);
  }
  // `event` reports what was allocated before the recording.
  void Before(format::Event& event) { script_.Api(event, kBeforeAttachApi); }
  static Scenario With(const AllocatorHistory& history, std::string_view text) {
    Scenario scenario{std::string(text), history.settings, std::nullopt};
    EXPECT_TRUE(scenario.settings.Change(text).ok());
    return scenario;
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(AllocatorReplayTest, SegmentBelongsToTheRequestThatNeededIt) {
  Segment(kA, 20 * kMiB);
  script_.FreeBlock(kA);
  script_.Block(kA, 20 * kMiB);
  Segment(kB, 64 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_THAT(history->segment_events, testing::ElementsAre(SegmentEvent{0, false, 20 * kMiB},
                                                            SegmentEvent{3, false, 64 * kMiB}));
  EXPECT_EQ(history->peak_reserved, 84 * kMiB);
  const Reproduction reproduction = Reproduce(*history);
  EXPECT_EQ(reproduction.reproduced, 2u);
  EXPECT_EQ(reproduction.peak_error, 0);
  EXPECT_TRUE(reproduction.is_good());
}

TEST_F(AllocatorReplayTest, DescendingAddressesOfSegmentsAreReproduced) {
  constexpr uint64_t kBlock = 9 * kMiB;
  for (const uint64_t segment : {kB, kA}) {
    script_.Alloc(segment, 20 * kMiB);
    script_.Block(segment, kBlock);
    script_.Block(segment + kBlock, kBlock);
  }
  script_.FreeBlock(kB);
  script_.FreeBlock(kA);
  script_.Block(kA, kBlock);  // the lower one of two equal free blocks
  script_.FreeBlock(kB + kBlock);
  script_.Block(kB, 15 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  const Reproduction reproduction = Reproduce(*history);
  EXPECT_EQ(reproduction.reproduced, 2u);
  EXPECT_EQ(reproduction.predicted_peak, 40 * kMiB);
}

TEST_F(AllocatorReplayTest, AllocatorOfOtherRulesIsNotReproduced) {
  Segment(kA, 20 * kMiB);
  script_.FreeBlock(kA);
  Segment(kB, 20 * kMiB);  // PyTorch would have used the first segment again
  const auto history = History();
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(Reproduce(*history).reproduced, 1u);
  EXPECT_FALSE(Reproduce(*history).is_good());
}

TEST_F(AllocatorReplayTest, FragmentedMemoryIsJoinedByExpandableSegments) {
  Segment(kA, 40 * kMiB);
  Segment(kB, 40 * kMiB);
  script_.FreeBlock(kA);
  script_.FreeBlock(kB);
  Segment(kC, 80 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(Predict(*history, With(*history, "")).peak_reserved, 160 * kMiB);
  const ScenarioResult expandable = Predict(*history, With(*history, "expandable_segments:True"));
  EXPECT_EQ(expandable.peak_reserved, 80 * kMiB);
  EXPECT_EQ(expandable.low, 80 * kMiB);
  EXPECT_GE(expandable.high, expandable.peak_reserved);
  EXPECT_FALSE(expandable.is_out_of_memory());
}

TEST_F(AllocatorReplayTest, CurveHasEachChangeOfReservedMemoryAtItsRequest) {
  CacheOneOfTwoSegments();
  const auto history = History();
  ASSERT_TRUE(history.ok());
  Scenario scenario = With(*history, "");
  scenario.capacity = 100 * kMiB;
  const ReservedCurve curve = SimulateCurve(*history, scenario);
  // Blocks are born after steps 1, 3 and 6. The last one first releases the cached segment.
  EXPECT_THAT(curve.changes,
              testing::ElementsAre(ReservedChange{0, 0}, ReservedChange{2, 40 * kMiB},
                                   ReservedChange{4, 80 * kMiB}, ReservedChange{7, 100 * kMiB}));
  EXPECT_EQ(curve.result.peak_reserved, 100 * kMiB);
  EXPECT_EQ(curve.first_failure, std::nullopt);
  scenario.capacity = 90 * kMiB;
  EXPECT_EQ(SimulateCurve(*history, scenario).first_failure, 7u);
  EXPECT_EQ(curve.After(0), 0u);
  EXPECT_EQ(curve.After(3), 40 * kMiB);
  EXPECT_EQ(curve.After(4), 80 * kMiB);
  EXPECT_EQ(curve.After(100), 100 * kMiB);
}

TEST_F(AllocatorReplayTest, HighestOfTheCurveIsThePredictedPeak) {
  ForEachSeed(SeedsUpTo(20), [this](uint32_t seed) {
    std::mt19937 random(seed);
    script_ = EventScript();
    std::vector<uint64_t> held;
    for (uint64_t i = 1; i <= 300; ++i) {
      if (!held.empty() && random() % 5 < 2) {
        std::swap(held[random() % held.size()], held.back());
        script_.FreeBlock(held.back());
        held.pop_back();
      } else {
        held.push_back(i * kGiB);
        script_.Block(held.back(), 512 << random() % 17);
      }
    }
    const auto history = History();
    ASSERT_TRUE(history.ok()) << history.status();
    for (const char* settings : {"", "expandable_segments:True", "max_split_size_mb:21",
                                 "garbage_collection_threshold:0.5"}) {
      Scenario scenario = With(*history, settings);
      for (const uint64_t capacity : {24 * kGiB, uint64_t{random() % 300} * kMiB}) {
        scenario.capacity = capacity;
        const ReservedCurve curve = SimulateCurve(*history, scenario);
        const auto highest = std::max_element(
            curve.changes.begin(), curve.changes.end(),
            [](const auto& one, const auto& other) { return one.bytes < other.bytes; });
        EXPECT_EQ(highest->bytes, Predict(*history, scenario).peak_reserved)
            << settings << " on " << capacity;
      }
    }
  });
}

TEST_F(AllocatorReplayTest, SmallerDeviceRunsOutWhereItsMemoryEnds) {
  CacheOneOfTwoSegments();
  const auto history = History();
  ASSERT_TRUE(history.ok());
  Scenario scenario = With(*history, "");
  scenario.capacity = 100 * kMiB;  // fits: the cached segment is released
  EXPECT_EQ(Predict(*history, scenario).retries, 1u);
  EXPECT_FALSE(Predict(*history, scenario).is_out_of_memory());
  scenario.capacity = 90 * kMiB;
  EXPECT_TRUE(Predict(*history, scenario).is_out_of_memory());
  EXPECT_EQ(Predict(*history, scenario).first_failure, 3u);
}

TEST_F(AllocatorReplayTest, CallsOfTheDriverTakeWhatTheyTookInTheRecording) {
  script_.Took(script_.Alloc(kA, 40 * kMiB), 300);
  script_.Block(kA, 40 * kMiB);
  script_.Took(script_.Alloc(kB, 40 * kMiB), 500);
  script_.Block(kB, 40 * kMiB);
  script_.FreeBlock(kA);
  const auto without_release = History();
  ASSERT_TRUE(without_release.ok());
  EXPECT_EQ(Predict(*without_release, With(*without_release, "")).driver_ns, 800u);
  EXPECT_EQ(Predict(*without_release, With(*without_release, "")).driver_calls, 2u);
  // What a page of an expandable segment costs is not recorded.
  const Scenario expandable = With(*without_release, "expandable_segments:True");
  EXPECT_EQ(Predict(*without_release, expandable).driver_calls, 4u);
  EXPECT_EQ(Predict(*without_release, expandable).driver_ns, std::nullopt);

  script_.Took(script_.Free(kA, 0), 2000);
  Segment(kC, 60 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->costs.release_ns, 2000.0);
  const ScenarioResult result = Predict(*history, With(*history, ""));
  EXPECT_EQ(result.driver_calls, 4u);
  EXPECT_EQ(result.driver_ns, 2800u);
}

TEST_F(AllocatorReplayTest, ReservedPeakIsFoundUpToALimit) {
  CacheOneOfTwoSegments();
  const auto history = History();
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(PeakReserved(*history, history->settings), 140 * kMiB);
  EXPECT_EQ(PeakReserved(*history, history->settings, 140 * kMiB), 140 * kMiB);
  EXPECT_EQ(PeakReserved(*history, history->settings, 139 * kMiB), std::nullopt);
  AllocatorSettings limited = history->settings;
  limited.memory_fraction = 0.001;
  EXPECT_EQ(PeakReserved(*history, limited), std::nullopt);
  EXPECT_GE(WorstReserved(*history, With(*history, "")), 140 * kMiB);
}

TEST_F(AllocatorReplayTest, LeastReservedIsWhereTheFirstRequestFails) {
  CacheOneOfTwoSegments();
  const auto history = History();
  ASSERT_TRUE(history.ok());
  const Need need = NeedOf(*history, history->settings);
  EXPECT_EQ(need.peak_allocated, 100 * kMiB);
  EXPECT_GE(need.least_reserved, 100 * kMiB);
  EXPECT_LE(need.least_reserved, 102 * kMiB);
  Scenario scenario = With(*history, "");
  for (const uint64_t capacity : {AllocatorSettings::kUnlimited, 110 * kMiB, 90 * kMiB}) {
    scenario.capacity = capacity;
    EXPECT_EQ(Predict(*history, scenario).least_reserved, need.least_reserved) << capacity;
  }
  scenario.capacity = need.least_reserved;
  EXPECT_FALSE(Predict(*history, scenario).is_out_of_memory());
}

TEST_F(AllocatorReplayTest, MemoryOutsideTheAllocatorTakesPartOfTheDevice) {
  Segment(kA, 40 * kMiB);
  script_.Alloc(kB, 50 * kMiB);  // holds no blocks: NCCL, for example
  script_.FreeBlock(kA);
  Segment(kC, 60 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  Scenario scenario = With(*history, "");
  scenario.capacity = 120 * kMiB;
  EXPECT_FALSE(Predict(*history, scenario).is_out_of_memory());
  scenario.capacity = 100 * kMiB;
  EXPECT_TRUE(Predict(*history, scenario).is_out_of_memory());
}

TEST_F(AllocatorReplayTest, SegmentsFromBeforeTheRecordingAreTheStart) {
  Segment(kA, 20 * kMiB);
  script_.Free(kB, 0);
  const auto whole = History();
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->peak_reserved, 20 * kMiB);
}

TEST_F(AllocatorReplayTest, FreePagesAndTheirNeighboursAreOneFreeBlockAtTheStart) {
  for (uint64_t page = 0; page < 4; ++page) {
    Before(script_.Create(kB + page, 20 * kMiB));
    Before(script_.Map(kA + page * 20 * kMiB, 20 * kMiB, kB + page));
  }
  Before(script_.Block(kA, 10 * kMiB));
  Before(script_.Block(kA + 70 * kMiB, 10 * kMiB));
  script_.Block(kA + 10 * kMiB, 60 * kMiB);
  const auto history = History({{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}});
  ASSERT_TRUE(history.ok()) << history.status();
  const ScenarioResult result = Predict(*history, With(*history, ""));
  EXPECT_EQ(result.peak_reserved, 80 * kMiB);
  EXPECT_EQ(result.driver_calls, 0u);
  ASSERT_EQ(history->start.size(), 1u);
  ASSERT_EQ(history->start[0].pieces.size(), 3u);
  EXPECT_EQ(history->start[0].pieces[1].size, 60 * kMiB);
}

TEST_F(AllocatorReplayTest, RecordedSettingsAreReplayed) {
  Segment(kA, 20 * kMiB);
  const auto history = History({{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}});
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->settings.max_split_bytes, 64 * kMiB);
  const auto imported = History({{"PYTORCH_CUDA_ALLOC_CONF", "\"\"", true},
                                 {"expandable_segments", "true", true},
                                 {"max_split_size", "67108864", true}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->settings.expandable_segments);
  EXPECT_EQ(imported->settings.max_split_bytes, 64 * kMiB);
}

TEST_F(AllocatorReplayTest, OnlyTheVariableThatPyTorchReadIsReplayed) {
  Segment(kA, 20 * kMiB);
  const std::vector<NamedText> both = {
      {"PYTORCH_ALLOC_CONF", "expandable_segments:True,pinned_num_register_threads:2"},
      {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64,release_lock_on_cudamalloc:True"}};
  const auto history = History(both);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_FALSE(history->settings.expandable_segments);
  EXPECT_EQ(history->settings.max_split_bytes, 64 * kMiB);
  EXPECT_EQ(history->other_options, "release_lock_on_cudamalloc:True");
}

TEST_F(AllocatorReplayTest, RecordedSettingsAreReadAsTheReleaseDid) {
  Segment(kA, 20 * kMiB);
  const std::vector<NamedText> settings = {
      {"PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:[512:2,>:8]"}};
  for (const auto& [torch, divisions] : {std::pair("2.9.1", 8u), std::pair("2.10.0", 2u)}) {
    const auto history = History(settings, {{"torch", torch}});
    ASSERT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(history->settings.roundup_divisions[9], divisions) << torch;
  }
}

TEST_F(AllocatorReplayTest, WhatCannotBeReplayedIsRefusedWithTheReason) {
  script_.Alloc(kA, 20 * kMiB);
  EXPECT_THAT(std::string(History().status().message()), HasSubstr("nothing to replay"));
  script_.Block(kA, 20 * kMiB);
  EXPECT_THAT(
      std::string(
          History({{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}).status().message()),
      HasSubstr("backend:cudaMallocAsync"));
  EXPECT_THAT(std::string(History({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}).status().message()),
              HasSubstr("without PyTorch's caching allocator"));
  script_.Gap(5);
  EXPECT_THAT(std::string(History().status().message()), HasSubstr("missing in 1 place"));
}

TEST_F(AllocatorReplayTest, FailedRequestThatFitsElsewhereIsNoFailure) {
  Segment(kA, 40 * kMiB);
  Segment(kB, 40 * kMiB);
  script_.FreeBlock(kA);
  script_.Free(kA, 0);
  script_.FailedBlock(70 * kMiB);
  auto history = History();
  ASSERT_TRUE(history.ok());
  history->capacity = 100 * kMiB;
  EXPECT_TRUE(Predict(*history, With(*history, "")).is_out_of_memory());
  Scenario larger = With(*history, "");
  larger.capacity = 120 * kMiB;
  EXPECT_FALSE(Predict(*history, larger).is_out_of_memory());
  EXPECT_TRUE(Fits(*history, larger));
}

TEST_F(AllocatorReplayTest, StepThatNeedsMoreThanTheDeviceFailsLater) {
  Segment(kA, 40 * kMiB);
  script_.FailedBlock(70 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  Scenario scenario = With(*history, "");
  scenario.capacity = 120 * kMiB;
  scenario.step_needs = 121 * kMiB;
  const ScenarioResult result = Predict(*history, scenario);
  EXPECT_EQ(result.failures, 0u);
  EXPECT_TRUE(result.fails_later);
  EXPECT_TRUE(result.is_out_of_memory());
  EXPECT_FALSE(Fits(*history, scenario));
  scenario.step_needs = 120 * kMiB;
  EXPECT_FALSE(Predict(*history, scenario).is_out_of_memory());
}

TEST_F(AllocatorReplayTest, ManyScenariosGiveTheSameAsOneByOne) {
  for (uint64_t i = 0; i < 20; ++i) Segment(kA + i * kGiB, (20 + 2 * i) * kMiB);
  for (uint64_t i = 0; i < 20; i += 2) script_.FreeBlock(kA + i * kGiB);
  Segment(kB, 100 * kMiB);
  const auto history = History();
  ASSERT_TRUE(history.ok());
  std::vector<Scenario> scenarios;
  for (const char* text :
       {"", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:2"})
    scenarios.push_back(With(*history, text));
  const std::vector<ScenarioResult> all = PredictAll(*history, scenarios);
  ASSERT_EQ(all.size(), scenarios.size());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].peak_reserved, Predict(*history, scenarios[i]).peak_reserved)
        << scenarios[i].name;
}

}  // namespace
}  // namespace gmt::analysis
