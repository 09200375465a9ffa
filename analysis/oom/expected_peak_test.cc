#include "analysis/oom/expected_peak.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using Basis = ExpectedPeak::Basis;

constexpr uint64_t kModel = 0x10000000, kStep = 0x100000000;
constexpr uint64_t kParameters = 100 * kMiB;
constexpr int kLayers = 4;

// A model of 100 MiB whose layers keep activations until the end of the backward pass.
class ExpectedPeakTest : public ::testing::Test {
 protected:
  void MakeModel() { script_.Block(kModel, kParameters, {"make", "main"}); }

  void MarkStep() { script_.Mark("step", steps_++); }

  void Layer(int layer, uint64_t bytes) {
    script_.Block(kStep + static_cast<uint64_t>(layer) * 0x10000000, bytes, {"forward", "train"});
  }
  void EndStep(int layers = kLayers) {
    for (int layer = layers; layer-- > 0;) {
      script_.FreeBlock(kStep + static_cast<uint64_t>(layer) * 0x10000000);
    }
    MarkStep();
  }
  void WholeStep(uint64_t bytes) {
    for (int layer = 0; layer < kLayers; ++layer) Layer(layer, bytes);
    EndStep();
  }
  // Makes the step fail in this layer.
  ExpectedPeak FailIn(int layer, uint64_t bytes, const FirstStepNeeds& needs = {}) {
    for (int done = 0; done < layer; ++done) Layer(done, bytes);
    script_.FailedBlock(bytes, {"forward", "train"});
    return Expect(needs);
  }
  ExpectedPeak Expect(const FirstStepNeeds& needs = {}) {
    const Trace trace = script_.Build();
    const Examination examination(trace, script_.definitions());
    const FailedAllocation& failed = trace.failed.back();
    return ExpectPeak(examination, Categorize(examination), failed,
                      StepsBefore(examination, failed), needs);
  }

  EventScript script_;
  uint64_t steps_ = 0;
};

TEST_F(ExpectedPeakTest, WithoutStepsItIsLiveMemoryPlusTheRequest) {
  MakeModel();
  const ExpectedPeak peak = FailIn(2, 10 * kMiB);
  EXPECT_EQ(peak.basis, Basis::kSoFar);
  EXPECT_EQ(peak.bytes, kParameters + 30 * kMiB);
}

TEST_F(ExpectedPeakTest, StepLikeEarlierOnesReachesTheirPeak) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 5; ++step) WholeStep(10 * kMiB);
  const ExpectedPeak peak = FailIn(1, 10 * kMiB);
  EXPECT_EQ(peak.basis, Basis::kEarlierSteps);
  EXPECT_EQ(peak.earlier_steps, 5u);
  EXPECT_EQ(peak.earlier_peak, kParameters + 40 * kMiB);
  EXPECT_EQ(peak.bytes, kParameters + 40 * kMiB);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 1);
}

TEST_F(ExpectedPeakTest, LargerInputsScaleOnlyWhatDependsOnThem) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 5; ++step) WholeStep(10 * kMiB);
  const ExpectedPeak peak = FailIn(1, 150 * kMiB);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 15);
  EXPECT_EQ(peak.bytes, kParameters + 15 * 40 * kMiB);
  EXPECT_EQ(peak.floor_bytes, kParameters);
}

TEST_F(ExpectedPeakTest, StepWithTheClosestInputsIsCompared) {
  MakeModel();
  MarkStep();
  for (const uint64_t bytes : {10, 40, 20, 10}) WholeStep(bytes * kMiB);
  const ExpectedPeak peak = FailIn(2, 44 * kMiB);
  EXPECT_NEAR(peak.input_ratio, 1.1, 0.001);
  EXPECT_NEAR(static_cast<double>(peak.bytes), kParameters + 4 * 44.0 * kMiB, kMiB);
}

TEST_F(ExpectedPeakTest, MemoryThatStaysRaisesTheFloor) {
  MakeModel();
  MarkStep();
  for (uint64_t step = 0; step < 5; ++step) {
    script_.Block(0x90000000 + step * 0x1000000, 8 * kMiB, {"append", "train"});
    WholeStep(10 * kMiB);
  }
  script_.Block(0xa0000000, 8 * kMiB, {"append", "train"});
  const ExpectedPeak peak = FailIn(0, 10 * kMiB);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 1);
  EXPECT_EQ(peak.bytes, kParameters + 5 * 8 * kMiB + 40 * kMiB);
}

TEST_F(ExpectedPeakTest, RequestThatNoStepMadeIsNotCompared) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 5; ++step) WholeStep(10 * kMiB);
  script_.FailedBlock(30 * kMiB, {"forward", "evaluate"});
  const ExpectedPeak peak = Expect();
  EXPECT_EQ(peak.basis, Basis::kSoFar);
  EXPECT_EQ(peak.bytes, kParameters + 30 * kMiB);
}

TEST_F(ExpectedPeakTest, FirstStepStillNeedsGradientsAndState) {
  MakeModel();
  FirstStepNeeds needs;
  needs.parameter_bytes = needs.trained_bytes = kParameters;
  needs.optimizer_bytes = 2 * kParameters;
  const ExpectedPeak peak = FailIn(1, 10 * kMiB, needs);
  EXPECT_EQ(peak.basis, Basis::kFirstStep);
  EXPECT_EQ(peak.bytes, 4 * kParameters);
  EXPECT_EQ(peak.least_bytes, 4 * kParameters);
}

TEST_F(ExpectedPeakTest, FirstStepHalfwayForwardNeedsTwiceTheActivations) {
  MakeModel();
  FirstStepNeeds needs;
  needs.parameter_bytes = needs.trained_bytes = kParameters;
  needs.optimizer_bytes = 2 * kParameters;
  needs.forward_share = 0.5;
  const ExpectedPeak peak = FailIn(9, 10 * kMiB, needs);
  EXPECT_EQ(peak.bytes, 3 * kParameters + 200 * kMiB);
}

TEST_F(ExpectedPeakTest, RepeatedlyConcatenatedTensorIsUnbounded) {
  MakeModel();
  for (uint64_t i = 1; i <= 6; ++i) {
    script_.Block(kStep + i * 0x10000000, i * 10 * kMiB, {"cat", "evaluate"});
    if (i > 1) script_.FreeBlock(kStep + (i - 1) * 0x10000000);
  }
  script_.FailedBlock(70 * kMiB, {"cat", "evaluate"});
  EXPECT_EQ(Expect().basis, Basis::kGrowth);
}

TEST_F(ExpectedPeakTest, LayersOfGrowingSizeAreNotOneGrowingTensor) {
  MakeModel();
  for (uint64_t i = 1; i <= 6; ++i) {
    script_.Block(kStep + i * 0x10000000, i * 10 * kMiB, {"forward", "train"});
  }
  script_.FailedBlock(70 * kMiB, {"forward", "train"});
  EXPECT_EQ(Expect().basis, Basis::kSoFar);
}

TEST_F(ExpectedPeakTest, HalfTheInputsStillNeedTheWholeModel) {
  ExpectedPeak peak;
  peak.bytes = 500;
  peak.floor_bytes = 100;
  peak.least_bytes = 320;
  EXPECT_EQ(peak.WithInputs(0.5), 320u);
  EXPECT_EQ(peak.WithInputs(2), 900u);
}

}  // namespace
}  // namespace gmt::analysis
