#include "analysis/categories/alive_by_category.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/event.h"

namespace gmt::analysis {
namespace {

using format::kRoleGradient;
using format::kRoleParameter;
using format::kRoleSaved;
using testing::ElementsAre;

constexpr uint32_t kPyTorch = kHostHeap + 1;

// Blocks of PyTorch, all of the same category as far as lives show it.
class AliveTest : public testing::Test {
 protected:
  AliveTest(size_t rows = 8) {
    trace_.heaps = {"driver", "host", "pytorch"};
    for (size_t i = 0; i < rows; ++i) {
      trace_.rows.heap.push_back(kPyTorch);
      trace_.rows.flags.push_back(0);
      trace_.rows.memory.push_back(BLOCK);
      trace_.rows.birth.push_back(1);
    }
    assignments_.resize(rows);
  }
  std::vector<Alive> Sum(const std::vector<std::pair<RowId, uint64_t>>& bytes, Step step = 100) {
    const Categories categories(assignments_, {""});
    const AliveByCategory alive(trace_, categories, step);
    AliveSums sums;
    for (const auto& [row, size] : bytes) alive.AddTo(sums, row, size);
    StackTexts texts(definitions_);
    return sums.Sorted(texts);
  }

  format::Definitions definitions_;
  Trace trace_;
  std::vector<Categories::Assignment> assignments_;
};

TEST_F(AliveTest, EverySavingNodeIsNamed) {
  trace_.role_changes = {{0, 1, kRoleSaved, 10, 100}, {0, 3, kRoleSaved, 11, 101}};
  EXPECT_THAT(RolesAt(trace_, 2).Of(0).nodes, ElementsAre(GraphNode{100, 10}));
  EXPECT_THAT(RolesAt(trace_, 3).Of(0).nodes, ElementsAre(GraphNode{100, 10}, GraphNode{101, 11}));
}

TEST_F(AliveTest, ReleasedMemoryIsHeldOnlyByTheProgram) {
  trace_.role_changes = {{0, 1, kRoleSaved, 10, 100}, {0, 2, 0, 0, 0}};
  assignments_[0].category = Category::kActivations;
  const std::vector<Alive> alive = Sum({{0, 64}});
  ASSERT_EQ(alive.size(), 1u);
  EXPECT_EQ(alive[0].because.reason, AliveReason::kProgram);
  EXPECT_TRUE(alive[0].because.observed);
  EXPECT_TRUE(alive[0].savers.empty());
}

TEST_F(AliveTest, MemoryWithoutARoleYetCanGetItsNextRole) {
  trace_.role_changes = {{0, 1, kRoleSaved, 10, 100},
                         {1, 5, kRoleSaved, 11, 101},
                         {1, 6, kRoleSaved, 12, 102},
                         {0, 7, 0, 0, 0},
                         {1, 8, 0, 0, 0},
                         {1, 9, kRoleGradient, 0, 0}};
  EXPECT_EQ(RolesAt(trace_, 3).Of(1).roles, 0u);
  const RolesAt next(trace_, 3, RolesAt::When::kNowOrNext);
  EXPECT_THAT(next.Of(0).nodes, ElementsAre(GraphNode{100, 10}));
  EXPECT_THAT(next.Of(1).nodes, ElementsAre(GraphNode{101, 11}, GraphNode{102, 12}));
}

TEST_F(AliveTest, MemoryFromBeforeTheRecordingIsNotSaidToBeHeldOnlyByTheProgram) {
  trace_.role_changes = {{7, 1, kRoleParameter, 0, 0}};
  trace_.rows.birth.Set(0, 0);
  assignments_[0].category = Category::kActivations;
  const std::vector<Alive> alive = Sum({{0, 64}});
  ASSERT_EQ(alive.size(), 1u);
  EXPECT_EQ(alive[0].because.reason, AliveReason::kSaved);
  EXPECT_FALSE(alive[0].because.observed);
}

TEST_F(AliveTest, WithoutRolesTheCategoryGivesTheReasonAndNothingIsObserved) {
  assignments_[0].category = Category::kActivations;
  assignments_[1].category = Category::kTemporaries;
  const std::vector<Alive> alive = Sum({{0, 64}, {1, 2}});
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].because.reason, AliveReason::kSaved);
  EXPECT_FALSE(alive[0].because.observed);
  EXPECT_EQ(alive[1].because.reason, AliveReason::kUnknown);
}

TEST_F(AliveTest, StateOfAnOptimizerAndInputsAreFoundByCategoryWithRolesToo) {
  trace_.role_changes = {{7, 1, kRoleParameter, 0, 0}};
  assignments_[0].category = Category::kOptimizerState;
  assignments_[1].category = Category::kInputs;
  assignments_[2].category = Category::kWorkspaces;
  const std::vector<Alive> alive = Sum({{0, 64}, {1, 32}, {2, 16}});
  ASSERT_EQ(alive.size(), 3u);
  EXPECT_EQ(alive[0].because.reason, AliveReason::kOptimizerState);
  EXPECT_EQ(alive[1].because.reason, AliveReason::kInput);
  EXPECT_EQ(alive[2].because.reason, AliveReason::kUnknown) << "no tensor of the program";
}

TEST_F(AliveTest, AParameterTakesPrecedenceOverAGradientAndBothOverSaved) {
  trace_.role_changes = {{0, 1, kRoleParameter | kRoleGradient | kRoleSaved, 1, 2},
                         {1, 1, kRoleGradient | kRoleSaved, 1, 2}};
  const std::vector<Alive> alive = Sum({{0, 64}, {1, 32}});
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].because.reason, AliveReason::kParameter);
  EXPECT_EQ(alive[1].because.reason, AliveReason::kGradient);
}

TEST_F(AliveTest, BlocksOfOneNodeAreOneSumAndMostBytesComeFirst) {
  trace_.role_changes = {{0, 1, kRoleSaved, 2, 1},
                         {1, 1, kRoleSaved, 2, 1},
                         {1, 2, kRoleSaved, 3, 1},
                         {2, 2, kRoleParameter, 0, 0}};
  const std::vector<Alive> alive = Sum({{0, 500}, {1, 500}, {2, 100}});
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].bytes, 1000u);
  EXPECT_EQ(alive[0].count, 2u);
  ASSERT_EQ(alive[0].savers.size(), 2u);
  EXPECT_EQ(alive[0].savers[0].stack, 2u);
  EXPECT_EQ(alive[0].savers[0].bytes, 1000u);
  EXPECT_EQ(alive[0].savers[1].bytes, 500u);
}

}  // namespace
}  // namespace gmt::analysis
