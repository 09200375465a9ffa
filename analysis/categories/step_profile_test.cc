#include "analysis/categories/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "analysis/testing/training_script.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kWeight = 4096, kUnit = 512;

class StepProfileTest : public ::testing::Test {
 protected:
  // Runs a step with a batch, scores and gradients of these sizes.
  void TrainingStep(uint64_t batch, uint64_t linear, uint64_t quadratic) {
    s_.Block(0x20000, batch, s_.Batch());
    s_.Block(0x40000, linear, s_.InForward("at::native::linear"));
    if (quadratic > 0) s_.Block(0x4000000, quadratic, s_.InForward("at::native::softmax"));
    s_.Backward([&] {
      s_.Block(0x8000000, kWeight, s_.InBackward("MmBackward0"));
      s_.Free(0x40000);
      if (quadratic > 0) s_.Free(0x4000000);
    });
    s_.Optimizer([&] { s_.Free(0x8000000); });
    s_.Free(0x20000);
  }
  std::optional<StepProfile> Profile() {
    trace_ = std::make_unique<Trace>(s_.script().Build());
    examination_ = std::make_unique<Examination>(*trace_, s_.script().definitions());
    categories_ = std::make_unique<Categories>(Categorize(*examination_));
    return MakeStepProfile(*examination_, *categories_, 0);
  }
  const StackGrowth* Of(const StepProfile& profile, const std::string& op) {
    for (const StackGrowth& stack : profile.inputs->stacks) {
      if (examination_->stacks().Frames(stack.stack).front().function == op) return &stack;
    }
    return nullptr;
  }

  TrainingScript s_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
  std::unique_ptr<Categories> categories_;
};

TEST_F(StepProfileTest, FloorStaysAndVariablePartComesWithAStep) {
  s_.Block(0x1000, kWeight, s_.Parameter());
  for (int i = 0; i < 6; ++i) TrainingStep(kUnit, 10 * kUnit, 0);
  const auto profile = Profile();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->steps, 5u);
  EXPECT_EQ(profile->floor, kWeight);
  EXPECT_EQ(profile->peak, 2 * kWeight + 11 * kUnit);
  EXPECT_TRUE(profile->inputs_known);
  EXPECT_FALSE(profile->inputs);
  const auto sum = [](const std::vector<CategoryUse>& uses) {
    return std::accumulate(
        uses.begin(), uses.end(), uint64_t{0},
        [](uint64_t bytes, const CategoryUse& use) { return bytes + use.bytes; });
  };
  EXPECT_EQ(sum(profile->floor_uses), profile->floor);
  EXPECT_EQ(sum(profile->peak_uses), profile->peak);
  EXPECT_EQ(profile->floor_uses.front().category, Category::kParameters);
}

TEST_F(StepProfileTest, LinearQuadraticAndConstantStacksAreDistinguished) {
  s_.Block(0x1000, kWeight, s_.Parameter());
  for (const uint64_t length : {8u, 12u, 4u, 16u, 10u, 6u, 14u, 9u}) {
    TrainingStep(length * kUnit, 40 * length * kUnit, 30 * length * length * kUnit);
  }
  const auto profile = Profile();
  ASSERT_TRUE(profile && profile->inputs);
  EXPECT_EQ(profile->inputs->least, 4 * kUnit);
  EXPECT_EQ(profile->inputs->most, 16 * kUnit);
  ASSERT_NE(Of(*profile, "at::native::linear"), nullptr);
  EXPECT_EQ(Of(*profile, "at::native::linear")->growth, Growth::kLinear);
  EXPECT_NEAR(Of(*profile, "at::native::linear")->per_input_byte, 40, 1e-6);
  EXPECT_EQ(Of(*profile, "at::native::softmax")->growth, Growth::kQuadratic);
  EXPECT_EQ(Of(*profile, "at::native::mm(at::Tensor const&)")->growth, Growth::kConstant);
  EXPECT_EQ(profile->inputs->constant_bytes, kWeight);
  EXPECT_EQ(profile->inputs->peak, Growth::kQuadratic);
  const double length = 71.0 / 7;  // without the first
  const double twice = 2 * length;
  const auto expected = static_cast<double>(kUnit) * (30 * twice * twice + 41 * twice);
  EXPECT_NEAR(static_cast<double>(profile->inputs->peak_with_twice), expected, 0.05 * expected);
}

TEST_F(StepProfileTest, WithoutAllocationsThatFollowTheInputsThereIsNoGrowth) {
  s_.Block(0x1000, kWeight, s_.Parameter());
  const uint64_t lengths[] = {8, 12, 4, 16, 10, 6, 14, 9}, others[] = {3, 90, 80, 5, 2, 70, 1, 60};
  for (size_t i = 0; i < 8; ++i) TrainingStep(lengths[i] * kUnit, others[i] * kUnit, 0);
  const auto profile = Profile();
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->inputs_known);
  EXPECT_FALSE(profile->inputs);
}

TEST_F(StepProfileTest, BatchesFetchedAheadOfEqualStepsGiveNoForecast) {
  s_.Block(0x1000, kWeight, s_.Parameter());
  for (const uint64_t fetched : {4u, 1u, 1u, 3u, 1u, 2u, 1u, 4u})
    TrainingStep(fetched * kUnit, 40 * kUnit, 0);
  const auto profile = Profile();
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->inputs_known);
  EXPECT_FALSE(profile->inputs);
}

TEST_F(StepProfileTest, TwoStepsGiveNoProfile) {
  for (int i = 0; i < 2; ++i) TrainingStep(kUnit, 10 * kUnit, 0);
  EXPECT_FALSE(Profile());
}

TEST_F(StepProfileTest, RecordingWithoutALoopHasNoProfile) {
  s_.Block(0x1000, kWeight, s_.Parameter());
  EXPECT_FALSE(Profile());
}

}  // namespace
}  // namespace gmt::analysis
