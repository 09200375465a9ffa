#include "answers/report/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/testing/event_script.h"
#include "answers/report/report_text.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ReportAllocatorTest : public ::testing::Test {
 protected:
  analysis::Report Report() {
    const analysis::Trace trace = script_.Build();
    return analysis::MakeReport(analysis::Examination(trace, script_.definitions()), {}).value();
  }
  std::string Text() { return ReportText(Report(), {}, 10, FramesShown::kFolded, Terminal{}); }
  nlohmann::ordered_json Json() {
    return nlohmann::ordered_json::parse(ReportJson(Report(), {"a.gmt"}, 10));
  }
  void Segment(uint64_t address, uint64_t size) {
    script_.Alloc(address, size, {"malloc", "train"});
    script_.Block(address, kMiB, {"train"});
  }
  // The cache of 20 MiB is released for a request of 64 MiB.
  void Retry() {
    Segment(0x1000000, 20 * kMiB);
    script_.FreeBlock(0x1000000);
    script_.Failed(64 * kMiB, {"malloc", "train"});
    script_.Free(0x1000000);
    Segment(0x8000000, 64 * kMiB);
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) {
      script_.Mark("step", static_cast<uint64_t>(i));
      script_.Block(0x10000, 512);
      script_.Begin("backward", static_cast<uint64_t>(i));
      script_.Block(0x20000, 1024);
      script_.FreeBlock(0x10000);
      script_.End("backward", static_cast<uint64_t>(i));
      script_.FreeBlock(0x20000);
    }
  }

  analysis::EventScript script_;
};

TEST_F(ReportAllocatorTest, WithoutAFrameworkTheTextIsEmpty) {
  script_.Alloc(0x1000, 512);
  EXPECT_EQ(AllocatorText(Report().allocator, 0), "");
  EXPECT_THAT(Json()["actions"], IsEmpty());
  EXPECT_TRUE(Json()["devices"][0]["steps"].is_null());
}

TEST_F(ReportAllocatorTest, RetriesArePrintedWithTheirCost) {
  Retry();
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("1 retry took 2.00 ms and released 20.0 MiB\n"));
  EXPECT_THAT(text, Not(HasSubstr("did not free enough")));
  const auto actions = Json()["actions"];
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0]["action"], "retry");
  EXPECT_EQ(actions[0]["released_bytes"], 20 * kMiB);
  EXPECT_EQ(actions[0]["requested_bytes"], 64 * kMiB);
  EXPECT_EQ(actions[0]["duration_ns"], 2 * analysis::EventScript::kStep_ns);
}

TEST_F(ReportAllocatorTest, OomIsPrintedWithTheRequestedBytes) {
  Segment(0x1000000, 20 * kMiB);
  script_.Failed(64 * kMiB);
  script_.Failed(64 * kMiB);
  script_.FailedBlock(63 * kMiB, {"train"});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("1 retry took 1.00 ms and released 0 B; 1 did not free enough"));
  EXPECT_THAT(text, HasSubstr("out of memory at 5.00 ms: 63.0 MiB requested"));
}

TEST_F(ReportAllocatorTest, PoolsAddUpToWhatIsReserved) {
  Segment(0x1000000, 20 * kMiB);
  Segment(0x4000000, 2 * kMiB);
  EXPECT_THAT(Text(), HasSubstr("large pool: 20.0 MiB in 1 segment; 1.00 MiB in 1 block, "
                                "0 B releasable, 19.0 MiB pinned by blocks\n"));
  const auto device = Json()["devices"][0];
  uint64_t reserved = 0;
  for (const auto& pool : device["pools"]) {
    reserved += pool["reserved_bytes"].get<uint64_t>();
    EXPECT_EQ(pool["reserved_bytes"],
              pool["allocated_bytes"].get<uint64_t>() + pool["pending_bytes"].get<uint64_t>() +
                  pool["releasable_bytes"].get<uint64_t>() + pool["pinned_bytes"].get<uint64_t>());
  }
  EXPECT_EQ(device["heaps"][1]["reserved_bytes"], reserved);
}

TEST_F(ReportAllocatorTest, StepsArePrintedWithTheirSourceAndPhases) {
  Steps(4);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("3 steps by mark step; the typical one peaks at 1.50 KiB in backward "
                              "(2 of 2) and grows by 0 B\n"));
  EXPECT_THAT(text, HasSubstr("  forward    peak     512 B   change     +512 B\n"));
  const auto steps = Json()["devices"][0]["steps"];
  EXPECT_EQ(steps["source"], "mark step");
  EXPECT_EQ(steps["steps"].size(), 3u);
  EXPECT_EQ(steps["typical"]["peak_phase"], "backward");
  EXPECT_EQ(steps["typical"]["phases"]["backward"]["peak_bytes"], 1536u);
}

TEST_F(ReportAllocatorTest, StepsWithoutDriverCallsAreSteadyFromThenOn) {
  Segment(0x1000000, 20 * kMiB);
  Steps(2);
  Segment(0x4000000, 20 * kMiB);
  Steps(5);
  EXPECT_THAT(Text(), HasSubstr("  driver calls: 1 up to step 2, none since step 3\n"));
  const auto calls = Json()["devices"][0]["driver_calls"];
  EXPECT_EQ(calls["last_step"], 2u);
  EXPECT_EQ(calls["steady"], true);
}

TEST_F(ReportAllocatorTest, DriverCallsThatDoNotEndArePrintedPerStep) {
  Segment(0x1000000, 20 * kMiB);
  Steps(1);
  for (uint64_t i = 1; i < 5; ++i) {
    script_.Alloc(0x1000000 + i * 0x2000000, 2 * kMiB).duration_ns = 3000;
    Steps(1);
  }
  EXPECT_THAT(Text(), HasSubstr("  driver calls: 1 per step after the first, 3.00 us per step; in "
                                "3 of 3 steps\n"));
  EXPECT_EQ(Json()["devices"][0]["driver_calls"]["steady"], false);
}

TEST_F(ReportAllocatorTest, TotalsThatDifferFromOursAreUnderNotKnown) {
  script_.Totals(script_.Block(0x1000, 512), 512, 0);
  script_.Totals(script_.Block(0x2000, 512), 4096, 0);
  EXPECT_THAT(Mismatches(Report().allocator.reconciliations),
              ElementsAre("GPU 0: pytorch reported 4.00 KiB allocated, the recording has 1.00 KiB, "
                          "first at 2.00 ms; 1 of 2 events differ, by up to 3.00 KiB"));
  EXPECT_THAT(Text(), HasSubstr("\n  GPU 0: pytorch reported 4.00 KiB"));
  const auto found = Json()["reconciliation"][0];
  EXPECT_EQ(found["allocated"]["different"], 1u);
  EXPECT_EQ(found["allocated"]["first"]["reported_bytes"], 4096u);
  EXPECT_TRUE(found["reserved"]["first"].is_null());
}

TEST_F(ReportAllocatorTest, BackwardMemoryIsShownByItsForwardLine) {
  const uint32_t forward = script_.Stack({"linear", "main"});
  script_.Block(0x1000, 512, {"apply"}).forward_stack = forward;
  EXPECT_THAT(Text(), HasSubstr("backward of linear (linear.py:10)"));
  EXPECT_THAT(Text(), HasSubstr("  in apply (apply.py:10)\n"));
  const auto row = Json()["rows"][0];
  EXPECT_EQ(row["forward_frames"][0]["function"], "linear");
  EXPECT_EQ(row["frames"][0]["function"], "apply");
}

TEST_F(ReportAllocatorTest, FreesThatMayHaveWaitedAreUnderNotKnown) {
  script_.Block(0x1000, 512);
  script_.RecordEvent(1, 7);
  script_.FreeBlock(0x1000);
  analysis::ReportOptions options;
  options.at = *analysis::ParseAt("end");
  const analysis::Trace trace = script_.Build();
  const auto report =
      analysis::MakeReport(analysis::Examination(trace, script_.definitions()), options).value();
  EXPECT_THAT(ReportText(report, {}, 10, FramesShown::kFolded, Terminal{}),
              HasSubstr("GPU 0: whether frees of 512 B had to wait for a stream"));
}

}  // namespace
}  // namespace gmt::answers
