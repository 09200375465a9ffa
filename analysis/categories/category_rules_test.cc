#include "analysis/categories/category_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(CategoryRules::Parse(text, "mine.txt").status().message());
}

TEST(CategoryRulesTest, BuiltInTextIsValid) {
  const auto rules = CategoryRules::Parse(BuiltInCategoryRules(), "category_rules.txt");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->rules().size(), CategoryRules::BuiltIn().rules().size());
  EXPECT_GT(rules->rules().size(), 50u);
}

TEST(CategoryRulesTest, RuleMatchesTheLivesAndBirthsThatItNames) {
  const auto rules = CategoryRules::Parse(
      "inputs born=start lives=phases,long file=*/loader.py\n"
      "kv_cache file=*/cache.py\n",
      "mine.txt");
  ASSERT_TRUE(rules.ok()) << rules.status();
  const CategoryRule& inputs = rules->rules()[0];
  EXPECT_TRUE(inputs.Fits(Lifespan::kAcross, Born::kStart));
  EXPECT_TRUE(inputs.Fits(Lifespan::kLong, Born::kStart));
  EXPECT_TRUE(inputs.Fits(Lifespan::kOpen, Born::kStart));
  EXPECT_FALSE(inputs.Fits(Lifespan::kPhase, Born::kStart));
  EXPECT_FALSE(inputs.Fits(Lifespan::kSteps, Born::kStart));
  EXPECT_FALSE(inputs.Fits(Lifespan::kLong, Born::kBackward));
  EXPECT_TRUE(rules->rules()[1].Fits(Lifespan::kPhase, Born::kOptimizer));
}

TEST(CategoryRulesTest, ErrorsNameTheLineAndWhatIsAllowedThere) {
  EXPECT_THAT(ErrorOf("# mine\nweights file=*\n"), HasSubstr("mine.txt:2: no category is called"));
  EXPECT_THAT(ErrorOf("weights file=*\n"), HasSubstr("optimizer_state"));
  EXPECT_THAT(ErrorOf("inputs lives=forever file=*\n"), HasSubstr("lives= has no 'forever'"));
  EXPECT_THAT(ErrorOf("inputs lives=forever file=*\n"), HasSubstr("phases"));
  EXPECT_THAT(ErrorOf("inputs born=noon file=*\n"), HasSubstr("optimizer"));
  EXPECT_THAT(ErrorOf("inputs lives=long\n"), HasSubstr("which frames"));
}

TEST(CategoryRulesTest, FileComesBeforeTheBuiltInRules) {
  const std::string path = ::testing::TempDir() + "/categories.txt";
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("kv_cache file=*/mine.py\n", file);
  fclose(file);
  const auto rules = CategoryRules::WithFile(path);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->rules().front().category, Category::kKvCache);
  EXPECT_TRUE(rules->rules().front().is_users);
  EXPECT_FALSE(rules->rules().back().is_users);
  EXPECT_THAT(std::string(CategoryRules::WithFile("/no/such/rules").status().message()),
              HasSubstr("/no/such/rules"));
}

}  // namespace
}  // namespace gmt::analysis
