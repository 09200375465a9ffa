#include "analysis/advise/advise.h"

#include <string>

#include "analysis/testing/training_loop.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

class AdviseTest : public ::testing::Test {
 protected:
  AdviseReport Ask(const AdviseOptions& options = {}) {
    trace_ = loop_.script.script().Build();
    trace_.devices = {{0, "GPU", device_bytes_}};
    const Examination examination(trace_, loop_.script.script().definitions());
    const Categories categories = Categorize(examination);
    const LeakReport leaks = FindLeaks(examination);
    return Advise(examination, categories, leaks, ExplainOom(examination, categories, leaks),
                  options);
  }
  static const Advice& Named(const AdviseReport& report, const std::string& name) {
    for (const Advice& advice : report.advice) {
      if (advice.name == name) return advice;
    }
    ADD_FAILURE() << "no advice " << name;
    return report.advice.front();
  }

  uint64_t device_bytes_ = 80 * kMiB;
  TrainingLoop loop_;
  Trace trace_;
};

TEST_F(AdviseTest, GradientsInTheForwardPassComeFirstBecauseTheyCostNothing) {
  loop_.Train(4);
  const AdviseReport report = Ask();
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.peak_bytes, TrainingLoop::kPeak);
  ASSERT_TRUE(report.next);
  EXPECT_EQ(report.advice[*report.next].name, "set_to_none");
  EXPECT_EQ(report.advice[*report.next].saved_bytes, 8 * kMiB);
}

TEST_F(AdviseTest, SavingsAreBoundedAndAddUp) {
  loop_.Train(4);
  const AdviseReport report = Ask();
  uint64_t further = 0;
  for (const Advice& advice : report.advice) {
    EXPECT_LE(advice.saved_bytes, advice.freed_bytes) << advice.name;
    EXPECT_LE(advice.freed_bytes, advice.is_of_reserved ? report.reserved_bytes : report.peak_bytes)
        << advice.name;
    if (!advice.applies()) {
      EXPECT_EQ(advice.saved_bytes + advice.further_bytes, 0u) << advice.name;
    }
    further += advice.further_bytes;
  }
  EXPECT_EQ(further, report.together_bytes);
  EXPECT_LT(further, report.peak_bytes);
  // Offloading after the state is in 8 bit saves only what is left of it.
  EXPECT_EQ(Named(report, "offload_state").saved_bytes, 16 * kMiB);
  EXPECT_LT(Named(report, "offload_state").further_bytes, 5 * kMiB);
}

TEST_F(AdviseTest, ChangeThatFreesNothingAtThePeakIsNotNext) {
  loop_.zero_grad_after_step = true;
  loop_.Train(4);
  const AdviseReport report = Ask();
  EXPECT_EQ(Named(report, "fused_optimizer").saved_bytes, 0u);
  EXPECT_FALSE(Named(report, "set_to_none").applies());
  ASSERT_TRUE(report.next);
  EXPECT_NE(report.advice[*report.next].name, "fused_optimizer");
}

TEST_F(AdviseTest, ChangeThatIsEnoughComesBeforeAnEarlierOneThatIsNot) {
  loop_.Train(4);
  AdviseOptions options;
  options.capacity = 64 * kMiB;
  const AdviseReport report = Ask(options);
  EXPECT_EQ(report.fits, false);
  EXPECT_EQ(Named(report, "set_to_none").suffices, Suffices::kNo);
  ASSERT_TRUE(report.next);
  // Half the batch would be 52 MiB, but in segments that do not fit.
  EXPECT_EQ(report.advice[*report.next].name, "offload_state");
  EXPECT_EQ(report.advice[*report.next].suffices, Suffices::kYes);
}

TEST_F(AdviseTest, NothingIsNeededIfAQuarterIsLeft) {
  device_bytes_ = 200 * kMiB;
  loop_.Train(4);
  const AdviseReport report = Ask();
  EXPECT_TRUE(report.has_room);
  // 41 MiB are of the batch, and 103 of 176 are left; the allocator needs a part of that.
  ASSERT_TRUE(report.batch_factor);
  EXPECT_GT(*report.batch_factor, 2);
  EXPECT_LT(*report.batch_factor, 1 + 103.0 / 41);
}

TEST_F(AdviseTest, RecordingOfOneStepIsRefused) {
  loop_.Train(1);
  EXPECT_THAT(Ask().refusal, HasSubstr("steps of a training loop"));
}

TEST_F(AdviseTest, RecordingWithMissingEventsIsRefused) {
  loop_.Train(3);
  loop_.script.script().Gap(5);
  EXPECT_THAT(Ask().refusal, HasSubstr("events are missing in 1 place"));
}

TEST_F(AdviseTest, RecordingWithoutBlocksIsRefused) {
  loop_.script.script().Alloc(uint64_t{1} << 40, 8 * kMiB);
  EXPECT_THAT(Ask().refusal, HasSubstr("no blocks of a framework's allocator"));
}

TEST_F(AdviseTest, AfterAnOutOfMemoryTheAdviceIsThatOfOom) {
  loop_.Train(3);
  loop_.script.script().FailedBlock(64 * kMiB);
  const AdviseReport report = Ask();
  EXPECT_EQ(report.refusal, "");
  EXPECT_TRUE(report.is_out_of_memory);
  const Examination examination(trace_, loop_.script.script().definitions());
  const Categories categories = Categorize(examination);
  const LeakReport leaks = FindLeaks(examination);
  const OomReport oom = ExplainOom(examination, categories, leaks);
  ASSERT_GT(report.advice.size(), oom.actions.size() + oom.not_helpful.size());
  for (size_t i = 0; i < oom.actions.size(); ++i) {
    EXPECT_EQ(report.advice[i].what, oom.actions[i].what);
    EXPECT_EQ(report.advice[i].saved_bytes, oom.actions[i].effect_bytes);
  }
}

TEST_F(AdviseTest, AfterAnOutOfMemoryOtherChangesCountWithWhatTheySaveInEarlierSteps) {
  loop_.Train(3);
  const AdviseReport whole = Ask();
  loop_.script.Block(uint64_t{9} << 32, 24 * kMiB, loop_.script.InForward());
  loop_.script.script().FailedBlock(64 * kMiB).stack = loop_.script.InForward();
  const AdviseReport report = Ask();
  for (const char* name : {"half_precision", "shard", "offload_state"}) {
    EXPECT_LE(Named(report, name).saved_bytes, Named(whole, name).saved_bytes) << name;
    EXPECT_GT(Named(report, name).saved_bytes, Named(whole, name).saved_bytes / 10 * 9) << name;
    EXPECT_NE(Named(report, name).suffices, Suffices::kYes) << name;
  }
  // Does not depend on the inputs.
  EXPECT_EQ(Named(report, "shard").saved_bytes, Named(whole, "shard").saved_bytes);
  ASSERT_TRUE(report.next);
  EXPECT_NE(report.advice[*report.next].confidence, Confidence::kLow);
}

TEST_F(AdviseTest, OutOfMemoryOfAnotherDeviceDoesNotMatter) {
  loop_.Train(4);
  const AdviseReport before = Ask();
  loop_.script.script().FailedBlock(64 * kMiB).device = 1;
  AdviseOptions options;
  options.device = 0;
  options.capacity = 64 * kMiB;
  const AdviseReport report = Ask(options);
  EXPECT_EQ(report.refusal, "");
  EXPECT_FALSE(report.is_out_of_memory);
  EXPECT_EQ(report.device, 0);
  EXPECT_EQ(report.capacity_bytes, options.capacity);
  EXPECT_EQ(report.together_bytes, before.together_bytes);
}

TEST_F(AdviseTest, CapacityIsRefusedAfterAnOutOfMemory) {
  loop_.Train(3);
  loop_.script.script().FailedBlock(64 * kMiB);
  AdviseOptions options;
  options.capacity = 64 * kMiB;
  EXPECT_THAT(Ask(options).refusal, HasSubstr("--capacity cannot be applied"));
}

TEST_F(AdviseTest, TensorsInDriverMemoryAreJudgedAsBlocksAre) {
  loop_.Train(4);
  const AdviseReport cached = Ask();
  loop_ = TrainingLoop();
  loop_.without_caching = true;
  loop_.Train(4);
  const AdviseReport report = Ask();
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.peak_bytes, TrainingLoop::kPeak);
  EXPECT_FALSE(report.is_replayable);
  for (const char* name : {"set_to_none", "micro_batch", "eight_bit_optimizer", "offload_state"})
    EXPECT_EQ(Named(report, name).saved_bytes, Named(cached, name).saved_bytes) << name;
}

TEST_F(AdviseTest, EachChangeSaysWhatItCosts) {
  loop_.Train(4);
  for (const Advice& advice : Ask().advice) {
    EXPECT_NE(advice.what, "") << advice.name;
    EXPECT_NE(advice.cost, "") << advice.name;
    if (advice.applies()) {
      EXPECT_NE(advice.why, "") << advice.name;
    }
  }
}

}  // namespace
}  // namespace gmt::analysis
