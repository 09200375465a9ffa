#include "answers/report/categories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "answers/report/steps.h"

namespace gmt::answers {
namespace {

using analysis::Category;
using analysis::CategoryUse;
using analysis::Confidence;
using ::testing::HasSubstr;
using ::testing::Not;

CategoryUse Use(Category category, uint64_t bytes) {
  return {category, bytes, 3, Confidence::kHigh, "lives across steps"};
}

TEST(ReportCategoriesTest, EachCategoryIsALineWithItsReason) {
  const std::string text = CategoriesText(
      {Use(Category::kOptimizerState, 3 << 20), Use(Category::kUnknown, 1 << 20)}, 4 << 20, 100);
  EXPECT_THAT(text, HasSubstr("3.00 MiB   75 %       3  optimizer state"));
  EXPECT_THAT(text, HasSubstr("high: lives across steps"));
  EXPECT_THAT(text, HasSubstr("1.00 MiB   25 %       3  unknown"));
}

TEST(ReportCategoriesTest, NoTableIfNothingIsKnown) {
  EXPECT_EQ(CategoriesText({Use(Category::kUnknown, 1 << 20)}, 1 << 20, 100), "");
  EXPECT_EQ(CategoriesText({}, 0, 100), "");
}

TEST(ReportCategoriesTest, LinesFitTheWidth) {
  CategoryUse use = Use(Category::kActivations, 1 << 20);
  use.reason = std::string(300, 'x');
  const std::string text = CategoriesText({use}, 1 << 20, 100);
  EXPECT_LE(text.substr(text.find('\n') + 1).size(), 101u);
}

TEST(ReportCategoriesTest, RowOfOneCategoryHasNoList) {
  nlohmann::ordered_json row;
  AddCategoryKeys({Use(Category::kGradients, 5)}, row);
  EXPECT_EQ(row["category"], "gradients");
  EXPECT_EQ(row["confidence"], "high");
  EXPECT_FALSE(row.contains("categories"));
  AddCategoryKeys({Use(Category::kGradients, 5), Use(Category::kTemporaries, 2)}, row);
  ASSERT_EQ(row["categories"].size(), 2u);
  EXPECT_EQ(row["categories"][1]["bytes"], 2);
}

class ReportStepsTest : public ::testing::Test {
 protected:
  ReportStepsTest() {
    profile_.steps = 5;
    profile_.floor = 100 << 20;
    profile_.peak = 150 << 20;
    profile_.floor_uses = {Use(Category::kParameters, 100 << 20)};
    profile_.peak_uses = {Use(Category::kParameters, 100 << 20),
                          Use(Category::kActivations, 50 << 20)};
  }
  std::string Text() const { return StepProfileText({profile_}, 0); }

  analysis::StepProfile profile_;
};

TEST_F(ReportStepsTest, GradientsThatOutliveStepsAreShownWithAFix) {
  EXPECT_THAT(Text(), Not(HasSubstr("gradients")));
  profile_.floor_uses.push_back(Use(Category::kGradients, 28 << 20));
  EXPECT_THAT(Text(), HasSubstr("gradients   28.0 MiB   held during the forward pass"));
  EXPECT_THAT(Text(), HasSubstr("zero_grad(set_to_none=True)"));
}

TEST_F(ReportStepsTest, FloorAndWhatAStepAdds) {
  EXPECT_THAT(Text(), HasSubstr("floor        100 MiB   parameters 100 MiB\n"));
  EXPECT_THAT(Text(), HasSubstr("variable    50.0 MiB   activations +50.0 MiB\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("inputs")));
  EXPECT_EQ(StepProfileText({profile_}, 1), "");
  EXPECT_TRUE(StepProfileJson({profile_}, 1).is_null());
}

TEST_F(ReportStepsTest, GrowthWithInputsIsPrintedInBytes) {
  analysis::InputGrowth inputs;
  inputs.least = 1024;
  inputs.most = 4096;
  inputs.linear_bytes = 30 << 20;
  inputs.quadratic_bytes = 8 << 20;
  inputs.constant_bytes = 2 << 20;
  inputs.peak_with_twice = 240 << 20;
  profile_.inputs = inputs;
  EXPECT_THAT(Text(), HasSubstr("inputs of 1.00 KiB to 4.00 KiB per step"));
  EXPECT_THAT(Text(),
              HasSubstr("30.0 MiB grow with them, 8.00 MiB with their square, 2.00 MiB do not\n"));
  EXPECT_THAT(Text(), HasSubstr("240 MiB estimated peak"));
  EXPECT_EQ(StepProfileJson({profile_}, 0)["inputs"]["quadratic_bytes"], 8 << 20);
  EXPECT_EQ(StepProfileJson({profile_}, 0)["variable_bytes"], 50 << 20);
}

}  // namespace
}  // namespace gmt::answers
