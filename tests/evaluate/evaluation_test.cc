#include "tests/evaluate/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gmt::evaluate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluationTest : public ::testing::Test {
 protected:
  static Evaluation Make(std::vector<const char*> words) {
    words.insert(words.begin(), "evaluate_things");
    return Evaluation({.name = "things", .title = "Things", .seeds = 3, .quick_seeds = 1},
                      static_cast<int>(words.size()), words.data());
  }
  static std::string Section(Evaluation evaluation, int code) {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(evaluation.Finish(), code);
    return ::testing::internal::GetCapturedStdout();
  }
};

TEST_F(EvaluationTest, OddSeedsJudgeAndEvenOnesTune) {
  EXPECT_THAT(Make({}).seeds(), ElementsAre(1, 3, 5));
  EXPECT_THAT(Make({"--tune"}).seeds(), ElementsAre(2, 4, 6));
  EXPECT_THAT(Make({"--seeds", "2"}).seeds(), ElementsAre(1, 3));
  EXPECT_THAT(Make({"--quick"}).seeds(), ElementsAre(1));
  EXPECT_THAT(Make({"--seed", "8", "--seed", "11"}).seeds(), ElementsAre(8, 11));
}

TEST_F(EvaluationTest, WrongUsageEndsWithTwo) {
  EXPECT_EXIT(Make({"--seeds"}), ::testing::ExitedWithCode(2), "needs a number");
  EXPECT_EXIT(Make({"--seeds", "0"}), ::testing::ExitedWithCode(2), "needs a number");
  EXPECT_EXIT(Make({"--seed", "-1"}), ::testing::ExitedWithCode(2), "needs a number");
  EXPECT_EXIT(Make({"--what"}), ::testing::ExitedWithCode(2), "no option '--what'");
}

TEST_F(EvaluationTest, MissedGoalIsTheExitCodeAndBold) {
  Evaluation evaluation = Make({});
  evaluation.AtLeast("recall", Rate{.right = 94, .all = 100}, 0.95);
  evaluation.AtMost("error", 0.04, 0.05);
  const std::string section = Section(std::move(evaluation), 1);
  EXPECT_THAT(section, HasSubstr("## Things\n"));
  EXPECT_THAT(section, HasSubstr("| recall | 0.940 (94 of 100), 95 %: 0.875-0.972 | >= 0.95 | "
                                 "**MISSED** |"));
  EXPECT_THAT(section, HasSubstr("| error | 0.04 | <= 0.05 | met |"));
}

TEST_F(EvaluationTest, OneSeedAloneJudgesNothing) {
  Evaluation evaluation = Make({"--seed", "1"});
  evaluation.Holds("sums", false);
  EXPECT_THAT(Section(std::move(evaluation), 0), Not(HasSubstr("MISSED")));
}

TEST_F(EvaluationTest, MissIsPrintedWithTheCommandThatRepeatsIt) {
  Evaluation evaluation = Make({});
  ::testing::internal::CaptureStderr();
  evaluation.Missed(5, "a FIFO was called a leak");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("evaluate_things --seed 5: a FIFO was called a leak"));
}

TEST_F(EvaluationTest, TextOfATableCannotEndItsCell) {
  Evaluation evaluation = Make({});
  evaluation.Table({"a"}, {{"x | y"}});
  EXPECT_THAT(Section(std::move(evaluation), 0), HasSubstr("| x \\| y |\n"));
}

TEST(RateTest, NothingCountedIsNoMiss) {
  EXPECT_EQ(Rate{}.value(), 1);
  EXPECT_EQ(Rate{}.text(), "1.000 (0 of 0)");
}

}  // namespace
}  // namespace gmt::evaluate
