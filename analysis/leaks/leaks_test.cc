#include "analysis/leaks/leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/leaks/trend.h"
#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"
#include "format/event.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaksTest : public ::testing::Test {
 protected:
  template <typename Cycle>
  void Run(uint32_t cycles, Cycle cycle) {
    script_.Mark("step", 0);
    for (uint32_t i = 0; i < cycles; ++i) {
      cycle(i);
      script_.Mark("step", i + 1);
    }
  }
  uint64_t NewAddress() { return next_ += uint64_t{1} << 30; }
  void Keep(uint64_t size, const EventScript::Functions& stack) {
    script_.Block(NewAddress(), size, stack);
  }
  void Brief(uint64_t size, const EventScript::Functions& stack) {
    const uint64_t address = NewAddress();
    script_.Block(address, size, stack);
    script_.FreeBlock(address);
  }
  gmt::Sample& SampleOfUs(uint64_t bytes) {
    script_.pid = 7;
    gmt::Sample& sample = script_.Sample(bytes + 100 * kMiB, 80 * 1024 * kMiB);
    sample.set_source("nvml");
    sample.add_processes()->set_pid(7);
    sample.mutable_processes(0)->set_bytes(bytes);
    return sample;
  }
  LeakReport Find(LeakOptions options = {}) {
    trace_ = script_.Build();
    return FindLeaks(Examination(trace_, script_.definitions()), options);
  }

  EventScript script_;
  Trace trace_;
  uint64_t next_ = 0;
};

TEST_F(LeaksTest, BelowAHundredCyclesThereIsNoVerdict) {
  Run(99, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const LeakReport report = Find();
  EXPECT_FALSE(report.enough);
  EXPECT_EQ(report.cycles.count, 99u);
  EXPECT_EQ(report.cycles_needed, 100u);
  EXPECT_THAT(report.suspects, IsEmpty());
  EXPECT_THAT(report.benign, IsEmpty());
}

TEST_F(LeaksTest, OneTensorThatGrowsIsALeakUnlessItIsTheCacheOfAGeneration) {
  const auto grow = [&](const std::string& function) {
    uint64_t last = 0;
    Run(200, [&](uint32_t i) {
      const uint64_t address = NewAddress();
      script_.Block(address, (10 + i) * kMiB, {function, "main"});
      if (last != 0) script_.FreeBlock(last);
      last = address;
    });
    script_.FreeBlock(last);
  };
  grow("append");
  LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kCatGrowth);

  script_ = EventScript();
  grow("transformers/cache_utils");
  report = Find();
  EXPECT_TRUE(report.enough);
  EXPECT_THAT(report.suspects, IsEmpty());
  ASSERT_THAT(report.benign, SizeIs(1));
  EXPECT_EQ(report.benign[0].label, "the KV cache of the sequences being generated");
  EXPECT_EQ(Whole(report.benign[0].bytes_per_cycle), kMiB);
  EXPECT_EQ(report.benign[0].room, std::nullopt);  // the size of the device is unknown
}

TEST_F(LeaksTest, CacheOfAGenerationHasRoomUntilTheDeviceIsFull) {
  uint64_t last = 0;
  Run(200, [&](uint32_t i) {
    const uint64_t address = NewAddress();
    script_.Block(address, (10 + i) * kMiB, {"transformers/cache_utils", "main"});
    if (last != 0) script_.FreeBlock(last);
    last = address;
  });
  script_.Sample((10 + 199) * kMiB, 1024 * kMiB);
  script_.FreeBlock(last);
  const LeakReport report = Find();
  ASSERT_THAT(report.benign, SizeIs(1));
  EXPECT_LE(report.benign[0].room, (1024 - 209) * kMiB);
  EXPECT_GE(report.benign[0].room, 500 * kMiB);
}

TEST_F(LeaksTest, WhatGrowsIsShownBeforeThereIsAVerdict) {
  Run(60, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const LeakReport report = Find();
  ASSERT_THAT(report.growing, SizeIs(1));
  EXPECT_EQ(report.growing[0].id, "");
  EXPECT_EQ(report.growing[0].common_frame->function, "append");
  EXPECT_EQ(Whole(report.growing[0].bytes_per_cycle), kMiB);
  EXPECT_THAT(report.suspects, IsEmpty());
}

TEST_F(LeaksTest, BelowFortyCyclesNothingIsCalledGrowing) {
  Run(39, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  EXPECT_THAT(Find().growing, IsEmpty());
}

TEST_F(LeaksTest, FromAHundredCyclesOnThereAreSuspectsInstead) {
  Run(100, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const LeakReport report = Find();
  EXPECT_THAT(report.suspects, SizeIs(1));
  EXPECT_THAT(report.growing, IsEmpty());
}

TEST_F(LeaksTest, TierRisesWithTheCyclesWatched) {
  Run(250, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  EXPECT_EQ(Find().suspects.at(0).tier, LeakTier::kLeak);
  LeakOptions options;
  options.window.to_ns = 150 * 2 * EventScript::kStep_ns;
  EXPECT_EQ(Find(options).suspects.at(0).tier, LeakTier::kLikely);
}

TEST_F(LeaksTest, GraphIsKeptIfTheMemoryIsStillSavedForABackwardPass) {
  Run(250, [&](uint32_t) {
    Keep(kMiB, {"forward", "train"});
    script_.Role(next_, format::kRoleSaved, "SoftmaxBackward0");
  });
  const LeakSuspect suspect = Find().suspects.at(0);
  EXPECT_EQ(suspect.kind, LeakKind::kGraphKept) << "one stack is enough";
  EXPECT_TRUE(suspect.alive.because.observed);
  ASSERT_EQ(suspect.alive.savers.size(), 1u);
  EXPECT_EQ(suspect.alive.savers[0].name, "SoftmaxBackward0");
}

TEST_F(LeaksTest, MemoryAllocatedOnlyByAnOptimizerIsGrowingState) {
  Run(250, [&](uint32_t) {
    format::Event& event = script_.Block(NewAddress(), kMiB);
    event.stack = PythonStack(script_, {{"zeros_like", "/lib/torch/_tensor.py"},
                                        {"Adam._init_group", "/lib/torch/optim/adam.py"},
                                        {"train", "/home/me/train.py"}});
  });
  EXPECT_EQ(Find().suspects.at(0).kind, LeakKind::kOptimizerGrows);
}

TEST_F(LeaksTest, TensorsAreKeptIfNoGraphHoldsAllocationsOfThreeStacks) {
  Run(250, [&](uint32_t) {
    for (const char* function : {"a", "b", "c"}) Keep(kMiB, {function, "forward", "train"});
    script_.Role(next_, format::kRoleSaved, "SoftmaxBackward0");
    script_.Role(next_, 0);
  });
  const LeakSuspect suspect = Find().suspects.at(0);
  EXPECT_EQ(suspect.kind, LeakKind::kTensorKept);
  EXPECT_EQ(suspect.alive.because.reason, AliveReason::kProgram);
  EXPECT_THAT(suspect.reason, HasSubstr("no graph holds it"));
}

TEST_F(LeaksTest, SuspectsAddUpToTheGrowthOfTheMinimum) {
  Run(300, [&](uint32_t cycle) {
    Brief(64 * kMiB, {"forward", "train"});
    Keep(3 * kMiB, {"append", "train"});
    Keep(cycle % 2 == 0 ? kMiB : 2 * kMiB, {"remember", "log", "train"});
    if (cycle < 20) Keep(kMiB, {"setup", "train"});
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(2));
  ASSERT_THAT(report.minima, SizeIs(1));
  const CycleMinima& minima = report.minima[0];
  double sum = 0, low = 0, high = 0;
  for (const LeakSuspect& suspect : report.suspects) {
    sum += suspect.bytes_per_cycle;
    low += suspect.low_bytes_per_cycle;
    high += suspect.high_bytes_per_cycle;
  }
  EXPECT_NEAR(sum, 4.5 * kMiB, 0.01 * kMiB);
  EXPECT_NEAR(sum, minima.bytes_per_cycle, 0.01 * sum);
  const double cycles = 300 - static_cast<double>(minima.first_cycle - 1) - 4;
  const auto grown = static_cast<double>(minima.last_bytes - minima.first_bytes);
  EXPECT_GE(grown, low * (cycles - 4));
  EXPECT_LE(grown, high * (cycles + 4));
}

TEST_F(LeaksTest, CleanLoopHasNoSuspect) {
  Run(300, [&](uint32_t) { Brief(64 * kMiB, {"forward", "train"}); });
  const LeakReport report = Find();
  EXPECT_TRUE(report.enough);
  EXPECT_THAT(report.suspects, IsEmpty());
}

TEST_F(LeaksTest, DriverMemoryCanLeakAndSegmentsCannot) {
  Run(300, [&](uint32_t) {
    const uint64_t segment = NewAddress();
    script_.Alloc(segment, 20 * kMiB, {"segment"});
    script_.Block(segment, 512);
    script_.FreeBlock(segment);
    script_.Alloc(NewAddress(), kMiB, {"knn_build", "train"});
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kDriver);
  EXPECT_EQ(report.suspects[0].bytes_per_cycle, kMiB);
  EXPECT_EQ(report.suspects[0].heap, "driver");
}

TEST_F(LeaksTest, MinimumOfAShortRunIsThatOfItsLastCycle) {
  Run(8, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const LeakReport report = Find();
  ASSERT_THAT(report.minima, SizeIs(1));
  EXPECT_EQ(report.minima[0].first_cycle, report.minima[0].values.size());
  EXPECT_EQ(report.minima[0].first_bytes, report.minima[0].last_bytes);
}

TEST_F(LeaksTest, PinnedMemoryBelongsToTheHost) {
  Run(300, [&](uint32_t) { script_.Pinned(NewAddress(), kMiB, {"pin", "train"}); });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kPinnedHost);
  EXPECT_EQ(report.suspects[0].device, kHostDevice);
  EXPECT_FALSE(report.suspects[0].eta_ns.has_value());
}

TEST_F(LeaksTest, BlocksThatAwaitAStreamForeverLeak) {
  Run(300, [&](uint32_t) {
    const uint64_t done = NewAddress(), forgotten = NewAddress();
    script_.Block(done, kMiB, {"forward", "train"});
    script_.FreeBlock(done);
    script_.FreeBlockDone(done);
    script_.Block(forgotten, kMiB, {"copy", "train"});
    script_.FreeBlock(forgotten);
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kAwaiting);
  EXPECT_EQ(report.suspects[0].common_frame->function, "copy");
}

TEST_F(LeaksTest, PoolThatKeepsWhatWasOutgrownIsARatchet) {
  Run(300, [&](uint32_t cycle) {
    script_.Alloc(NewAddress(), (cycle + 1) * kMiB / 16, {"pool_alloc", "serve"});
  });
  EXPECT_EQ(Find().suspects.at(0).kind, LeakKind::kPoolRatchet);
}

TEST_F(LeaksTest, GrowthThatNoEventExplainsIsUntracked) {
  Run(400, [&](uint32_t cycle) {
    Brief(kMiB, {"forward", "train"});
    SampleOfUs((1000 + cycle / 4 * 2) * kMiB);
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kUntracked);
  EXPECT_EQ(report.suspects[0].tier, LeakTier::kLeak);
  EXPECT_NEAR(report.suspects[0].bytes_per_cycle, 0.5 * kMiB, 0.02 * kMiB);
  EXPECT_THAT(report.suspects[0].stacks, IsEmpty());
}

TEST_F(LeaksTest, GrowthOfAllProcessesTogetherIsOnlyPossible) {
  Run(400, [&](uint32_t cycle) {
    Brief(kMiB, {"forward", "train"});
    script_.Sample((1000 + cycle) * kMiB, 80 * 1024 * kMiB).set_source("cudaMemGetInfo");
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].tier, LeakTier::kPossible);
}

TEST_F(LeaksTest, GrowthThatIsRecordedIsNotUntrackedToo) {
  uint64_t driver = 500 * kMiB;
  Run(400, [&](uint32_t) {
    script_.Alloc(NewAddress(), kMiB, {"leak", "train"});
    SampleOfUs(driver += kMiB);
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].kind, LeakKind::kDriver);
}

TEST_F(LeaksTest, TimeUntilTheDeviceIsFullComesFromTheRoomLeft) {
  Run(300, [&](uint32_t) {
    Keep(kMiB, {"append", "train"});
    script_.Sample(1024 * kMiB, 4096 * kMiB).set_source("nvml");
  });
  const LeakReport report = Find();
  const LeakSuspect& suspect = report.suspects.at(0);
  // 4096 MiB minus the 1024 in use, which contain the 300 leaked; a step has 3 events of a
  // millisecond.
  ASSERT_TRUE(suspect.eta_ns.has_value());
  EXPECT_NEAR(static_cast<double>(*suspect.eta_ns), (4096 - 1024) * 3e6, 1e8);
  EXPECT_LE(*suspect.low_eta_ns, *suspect.eta_ns);
  EXPECT_GE(*suspect.high_eta_ns, *suspect.eta_ns);
}

TEST_F(LeaksTest, SuspectsOfTheSameStepsNameTheFirst) {
  Run(300, [&](uint32_t step) {
    Keep(2 * kMiB, {"activations", "train"});
    Keep(kMiB, {"inputs", "load"});
    if (step % 3 == 0) Keep(kMiB, {"evaluate", "main"});
  });
  const LeakReport report = Find();
  ASSERT_THAT(report.suspects, SizeIs(3));
  EXPECT_EQ(report.suspects[0].lock_step_with, "");
  EXPECT_EQ(report.suspects[1].lock_step_with, "leak/1");
}

TEST_F(LeaksTest, WithoutStepsAVerdictIsAtMostPossible) {
  for (int i = 0; i < 4000; ++i) Keep(kMiB, {"append", "serve"});
  const LeakReport report = Find();
  EXPECT_FALSE(report.cycles.clear);
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].tier, LeakTier::kPossible);
}

TEST_F(LeaksTest, OneDeviceCanBeSelected) {
  Run(300, [&](uint32_t) {
    script_.Block(NewAddress(), kMiB, {"append", "train"}).device = 1;
    Brief(kMiB, {"forward", "train"});
  });
  LeakOptions options;
  options.device = 0;
  EXPECT_THAT(Find(options).suspects, IsEmpty());
  options.device = 1;
  EXPECT_THAT(Find(options).suspects, SizeIs(1));
}

TEST_F(LeaksTest, BenignGrowthIsLabelled) {
  std::vector<uint64_t> queue;
  Run(300, [&](uint32_t cycle) {
    Brief(64 * kMiB, {"forward", "train"});
    if (cycle == 150) Keep(10 * kMiB, {"ema", "train"});
    queue.push_back(NewAddress());
    script_.Block(queue.back(), kMiB, {"push", "train"});
    if (queue.size() > 40) script_.FreeBlock(queue[queue.size() - 41]);
  });
  const LeakReport report = Find();
  EXPECT_THAT(report.suspects, IsEmpty());
  std::vector<std::string> labels;
  for (const BenignGrowth& growth : report.benign) labels.push_back(growth.label);
  EXPECT_THAT(labels, ::testing::UnorderedElementsAre("allocated once, at step 151",
                                                      HasSubstr("queue of 40, full since step 4")));
}

TEST_F(LeaksTest, EmptyRecordingGivesNoVerdict) {
  const LeakReport report = Find();
  EXPECT_FALSE(report.enough);
  EXPECT_EQ(report.cycles.count, 0u);
}

TEST_F(LeaksTest, HostileValuesCauseNoUndefinedBehaviour) {
  Run(300, [&](uint32_t cycle) {
    format::Event& event = script_.Block(NewAddress(), UINT64_MAX, {"append", "train"});
    event.t_ns = cycle % 2 == 0 ? INT64_MAX : INT64_MIN;
    script_.FreeBlock(12345);
    script_.Sample(UINT64_MAX, UINT64_MAX);
  });
  Find();
}

}  // namespace
}  // namespace gmt::analysis
