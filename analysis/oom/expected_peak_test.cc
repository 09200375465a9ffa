#include "analysis/oom/expected_peak.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using Basis = ExpectedPeak::Basis;

constexpr uint64_t kModel = 0x10000000, kGradient = 0x80000000, kStep = 0x100000000;
constexpr uint64_t kParameters = 100 * kMiB;
constexpr int kLayers = 4;

// A model of 100 MiB whose layers keep activations until the end of the backward pass.
class ExpectedPeakTest : public ::testing::Test {
 protected:
  void MakeModel() { script_.Block(kModel, kParameters, {"make", "main"}); }

  void MarkStep() { script_.Mark("step", steps_++); }

  format::Event& Layer(int layer, uint64_t bytes) {
    return script_.Block(kStep + static_cast<uint64_t>(layer) * 0x10000000, bytes,
                         {"forward", "train"});
  }
  void FreeLayers(int from = 0, int to = kLayers) {
    for (int layer = to; layer-- > from;) {
      script_.FreeBlock(kStep + static_cast<uint64_t>(layer) * 0x10000000);
    }
  }
  void EndStep() {
    FreeLayers();
    MarkStep();
  }
  void WholeStep(uint64_t bytes) {
    for (int layer = 0; layer < kLayers; ++layer) Layer(layer, bytes);
    EndStep();
  }
  // A forward and a backward pass, which the program's function `line` begins. Gradients that do
  // not exist yet are allocated in it.
  void Pass(uint64_t bytes, const std::string& line = "train", uint64_t gradient_bytes = 0) {
    for (int layer = 0; layer < kLayers; ++layer) Layer(layer, bytes);
    script_.Begin("backward", ++ranges_, {"backward", line});
    FreeLayers(1);
    if (gradient_bytes > 0 && !has_gradients_) {
      script_.Block(kGradient, gradient_bytes, {"backward", line});
      script_.Role(kGradient, format::kRoleGradient);
      has_gradients_ = true;
    }
    FreeLayers(0, 1);
    script_.End("backward", ranges_);
  }
  void ZeroGrad() {
    script_.FreeBlock(kGradient);
    has_gradients_ = false;
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
  uint64_t steps_ = 0, ranges_ = 0;
  bool has_gradients_ = false;
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

TEST_F(ExpectedPeakTest, ThirdMicroBatchIsComparedWithOthersIfEarlierStepsHadTwo) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    Pass(10 * kMiB);
    Pass(40 * kMiB);
    MarkStep();
  }
  Pass(10 * kMiB);
  Pass(10 * kMiB);
  const ExpectedPeak peak = FailIn(1, 40 * kMiB);
  EXPECT_EQ(peak.basis, Basis::kEarlierSteps);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 1);
  EXPECT_EQ(peak.bytes, kParameters + 4 * 40 * kMiB);
}

TEST_F(ExpectedPeakTest, FurtherMicroBatchesBeginWithTheGradientsOfTheFirst) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) Pass(10 * kMiB, "train", 25 * kMiB);
    ZeroGrad();
    MarkStep();
  }
  EXPECT_EQ(FailIn(1, 10 * kMiB).bytes, kParameters + 4 * 10 * kMiB + 25 * kMiB);
}

TEST_F(ExpectedPeakTest, MicroBatchThatBeginsWithGradientsCountsThemOnce) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) Pass(10 * kMiB, "train", 25 * kMiB);
    ZeroGrad();
    MarkStep();
  }
  Pass(10 * kMiB, "train", 25 * kMiB);
  EXPECT_EQ(FailIn(1, 20 * kMiB).bytes, kParameters + 4 * 20 * kMiB + 25 * kMiB);
}

TEST_F(ExpectedPeakTest, GradientThatIsNotYetReportedAsOneDoesNotCountAsInput) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    Pass(10 * kMiB, "train", 25 * kMiB);
    ZeroGrad();
    MarkStep();
  }
  for (int layer = 0; layer < kLayers; ++layer) Layer(layer, 10 * kMiB);
  script_.Begin("backward", ++ranges_, {"backward", "train"});
  FreeLayers(1);
  script_.Block(kGradient, 25 * kMiB, {"backward", "train"});
  script_.FailedBlock(30 * kMiB, {"backward", "other"});
  const ExpectedPeak peak = Expect();
  EXPECT_DOUBLE_EQ(peak.input_ratio, 1);
  EXPECT_EQ(peak.bytes, kParameters + 65 * kMiB);
}

TEST_F(ExpectedPeakTest, PassOfAnotherModelThatFollowsInTheStepCounts) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    Pass(10 * kMiB, "judge");
    Pass(30 * kMiB, "maker");
    MarkStep();
  }
  const ExpectedPeak peak = FailIn(1, 10 * kMiB);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 1);
  EXPECT_EQ(peak.bytes, kParameters + 4 * 30 * kMiB);
}

TEST_F(ExpectedPeakTest, GradientsThatAreSetToZeroBeforeThePeakAreNotInIt) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    Pass(10 * kMiB, "train", 25 * kMiB);
    MarkStep();
    script_.Block(0x90000000, kMiB, {"embed", "train"});
    ZeroGrad();
    script_.FreeBlock(0x90000000);
  }
  Pass(10 * kMiB, "train", 25 * kMiB);
  MarkStep();
  script_.FailedBlock(2 * kMiB, {"embed", "train"});
  const ExpectedPeak peak = Expect();
  EXPECT_TRUE(peak.gradients_go);
  EXPECT_EQ(peak.bytes, kParameters + 2 * 4 * 10 * kMiB);
}

TEST_F(ExpectedPeakTest, WhatBlocksAreLargerThanTheirTensorsDoesNotGrowWithTheInputs) {
  MakeModel();
  MarkStep();
  for (int step = 0; step < 3; ++step) {
    for (int layer = 0; layer < kLayers; ++layer) {
      format::Event& event = Layer(layer, 10 * kMiB);
      event.present |= format::kHasRequested;
      event.requested = 9 * kMiB;
    }
    EndStep();
  }
  const ExpectedPeak peak = FailIn(0, 90 * kMiB);
  EXPECT_DOUBLE_EQ(peak.input_ratio, 10);
  EXPECT_EQ(peak.bytes, kParameters + 4 * (90 + 1) * kMiB);
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

TEST_F(ExpectedPeakTest, BackwardPassBeginsWithEverythingThatTheForwardPassSaved) {
  MakeModel();
  FirstStepNeeds needs;
  needs.parameter_bytes = needs.trained_bytes = kParameters;
  needs.workspace_bytes = 8 * kMiB;
  needs.backward_bytes = 28 * kMiB;
  needs.forward_share = 0.5;
  script_.Block(0x90000000, 8 * kMiB, {"handle", "main"});
  EXPECT_EQ(FailIn(9, 10 * kMiB, needs).bytes, kParameters + 8 * kMiB + 200 * kMiB + 28 * kMiB);
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

TEST_F(ExpectedPeakTest, GenerationNeedsWhatItHoldsAndTheRequest) {
  // Each step replaces the cache of both layers by a longer one.
  const auto address = [](uint64_t step, uint64_t layer) {
    return kStep + (2 * step + layer) * 0x10000000;
  };
  for (uint64_t step = 0; step < 20; ++step) {
    for (const uint64_t layer : {0, 1}) {
      script_.Block(address(step, layer), (100 + step) * kMiB,
                    {"transformers/cache_utils", "main"});
      if (step > 0) script_.FreeBlock(address(step - 1, layer));
    }
    MarkStep();
  }
  script_.FailedBlock(120 * kMiB, {"transformers/cache_utils", "main"});
  const ExpectedPeak peak = Expect();
  EXPECT_EQ(peak.basis, Basis::kSoFar);
  EXPECT_EQ(peak.bytes, 2 * 119 * kMiB + 120 * kMiB);
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
