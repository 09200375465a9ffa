#include "analysis/loop/phase_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/training_script.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class PhaseSpansTest : public ::testing::Test {
 protected:
  PhaseSpans Find() {
    const Trace trace = s_.script().Build();
    PhaseSpans found = FindPhaseSpans(trace, s_.script().definitions());
    Step reached = 0;
    for (const PhaseSpan& span : found.spans) {
      EXPECT_LE(reached, span.begin);
      EXPECT_LT(span.begin, span.end);
      EXPECT_LE(span.end, trace.last_step());
      reached = span.end;
    }
    return found;
  }
  void Born(uint32_t stack) { s_.Block(next_ += 0x1000, 512, stack); }

  TrainingScript s_;
  uint64_t next_ = 0;
};

void ExpectSpan(const PhaseSpan& span, Step begin, Step end, Phase phase) {
  EXPECT_EQ(span.begin, begin);
  EXPECT_EQ(span.end, end);
  EXPECT_EQ(span.phase, phase);
}

TEST_F(PhaseSpansTest, RangesMarkBackwardPassesAndOptimizers) {
  Born(s_.InForward());
  s_.Backward([&] { Born(0), Born(0); });
  s_.Optimizer([&] { Born(0); });
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(2));
  ExpectSpan(found.spans[0], 1, 3, Phase::kBackward);
  ExpectSpan(found.spans[1], 3, 4, Phase::kOptimizer);
  EXPECT_TRUE(found.backward_is_recorded && found.optimizer_is_recorded);
  EXPECT_EQ(found.passes, 1u);
}

TEST_F(PhaseSpansTest, OptimizerInsideSplitsItsPassInTwo) {
  s_.Backward([&] {
    Born(0);
    s_.Optimizer([&] { Born(0); });
    Born(0);
  });
  s_.Backward([&] { Born(0); });
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(4));
  ExpectSpan(found.spans[1], 1, 2, Phase::kOptimizer);
  EXPECT_EQ(found.spans[0].pass, 0u);
  EXPECT_EQ(found.spans[2].pass, 0u);
  EXPECT_EQ(found.spans[3].pass, 1u);
}

TEST_F(PhaseSpansTest, OptimizerThatRunsAClosureBeginsAfterItsLastBackwardPass) {
  s_.Optimizer([&] {
    for (int i = 0; i < 2; ++i) {
      Born(s_.InForward());
      s_.Backward([&] { Born(0); });
    }
    Born(0);
  });
  Born(0);
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(3));
  ExpectSpan(found.spans[0], 1, 2, Phase::kBackward);
  ExpectSpan(found.spans[1], 3, 4, Phase::kBackward);
  ExpectSpan(found.spans[2], 4, 5, Phase::kOptimizer);
}

TEST_F(PhaseSpansTest, OptimizerThatAllocatesNothingAfterItsClosureHasNoSpan) {
  s_.Optimizer([&] { s_.Backward([&] { Born(0); }); });
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(1));
  ExpectSpan(found.spans[0], 0, 1, Phase::kBackward);
}

TEST_F(PhaseSpansTest, ReenteredPassesAreOne) {
  s_.Backward([&] {
    Born(0);
    s_.Backward([&] { Born(0); });
    Born(0);
  });
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(1));
  ExpectSpan(found.spans[0], 0, 3, Phase::kBackward);
}

TEST_F(PhaseSpansTest, WithoutRangesStacksDecide) {
  s_.with_ranges = false;
  for (int i = 0; i < 2; ++i) {
    Born(s_.InForward());
    Born(s_.InBackward("MmBackward0"));
    s_.Free(next_);
    Born(0);  // unknown stack
    Born(s_.Recomputed());
    Born(s_.State());
  }
  const PhaseSpans found = Find();
  EXPECT_FALSE(found.backward_is_recorded || found.optimizer_is_recorded);
  ASSERT_THAT(found.spans, SizeIs(4));
  ExpectSpan(found.spans[0], 1, 5, Phase::kBackward);
  ExpectSpan(found.spans[1], 5, 6, Phase::kOptimizer);
  EXPECT_EQ(found.passes, 2u);
}

TEST_F(PhaseSpansTest, RecordingWithoutTrainingHasNoSpans) {
  Born(s_.InForward());
  EXPECT_THAT(Find().spans, IsEmpty());
}

TEST_F(PhaseSpansTest, RangeThatIsOpenAtTheEndEndsThere) {
  s_.script().Begin("backward", 1);
  Born(0);
  const PhaseSpans found = Find();
  ASSERT_THAT(found.spans, SizeIs(1));
  ExpectSpan(found.spans[0], 0, 1, Phase::kBackward);
}

TEST_F(PhaseSpansTest, InnermostFrameDecidesWhatAStackIs) {
  const uint32_t in_hook = s_.Stack({{"at::native::zeros_like"},
                                     {"AdamW._init_group", s_.Torch("optim/adam.py")},
                                     {"torch::autograd::Engine::evaluate_function(int)"}});
  const uint32_t nested =
      s_.Stack({{"at::mm"},
                {"torch::autograd::Engine::evaluate_function(int)"},
                {"CheckpointFunction.backward", s_.Torch("utils/checkpoint.py")},
                {"torch::autograd::Engine::evaluate_function(int)"}});
  const uint32_t scheduler =
      s_.Stack({{"at::mul"}, {"LRScheduler.step", s_.Torch("optim/lr_scheduler.py")}});
  const uint32_t forward = s_.InForward(), again = s_.Recomputed();
  StackPhases phases(s_.script().definitions());
  EXPECT_EQ(phases.Of(in_hook), StackPhase::kOptimizer);
  EXPECT_EQ(phases.Of(nested), StackPhase::kBackward);
  EXPECT_EQ(phases.Of(again), StackPhase::kRecomputed);
  EXPECT_EQ(phases.Of(scheduler), StackPhase::kNone);
  EXPECT_EQ(phases.Of(forward), StackPhase::kNone);
  EXPECT_EQ(phases.Of(0), StackPhase::kNone);
  EXPECT_EQ(phases.Of(UINT32_MAX), StackPhase::kNone);
}

}  // namespace
}  // namespace gmt::analysis
