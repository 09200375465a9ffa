#include "analysis/categories/alive_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

using format::kRoleGradient;
using format::kRoleParameter;
using format::kRoleSaved;

constexpr uint64_t kBlock = 0x1000, kOther = 0x2000;

class AliveTextsTest : public ::testing::Test {
 protected:
  // Returns the text of the n-th row.
  std::string Of(RowId row, Category category = Category::kUnknown) {
    trace_ = std::make_unique<Trace>(script_.Build());
    examination_ = std::make_unique<Examination>(*trace_, script_.definitions());
    std::vector<Categories::Assignment> assignments(trace_->rows.count());
    assignments[row].category = category;
    const Categories categories(assignments, {""});
    return AliveTexts(*examination_, categories).Of(row);
  }

  EventScript script_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
};

TEST_F(AliveTextsTest, ABlockIsAParameter) {
  script_.Block(kBlock, 512);
  script_.Role(kBlock, kRoleParameter);
  EXPECT_EQ(Of(0), "a parameter");
}

TEST_F(AliveTextsTest, NodesThatSavedItAreNamedInTheirOrderAndTheRestIsCounted) {
  script_.Block(kBlock, 512);
  for (const char* node :
       {"SoftmaxBackward0", "MulBackward0", "BmmBackward0", "BmmBackward0", "AddBackward0"})
    script_.Role(kBlock, kRoleSaved, node);
  EXPECT_EQ(Of(0), "saved for backward by SoftmaxBackward0, MulBackward0 and 2 other nodes");
}

TEST_F(AliveTextsTest, MemoryThatOutlivesItsRoleIsThenHeldByTheProgram) {
  script_.Block(kBlock, 512);
  script_.Role(kBlock, kRoleSaved, "SoftmaxBackward0");
  script_.Role(kBlock, 0);
  EXPECT_EQ(Of(0), "saved for backward by SoftmaxBackward0; then only the program held it");
}

TEST_F(AliveTextsTest, SeveralRolesAreListedInOrder) {
  script_.Block(kBlock, 512);
  script_.Role(kBlock, kRoleSaved, "MulBackward0");
  script_.Role(kBlock, kRoleGradient);
  EXPECT_EQ(Of(0), "saved for backward by MulBackward0, a gradient");
}

TEST_F(AliveTextsTest, WithoutARoleOnlyTheProgramHoldsItUnlessItsCategoryGivesAReason) {
  script_.Block(kBlock, 512);
  script_.Block(kOther, 512);
  script_.Role(kOther, kRoleParameter);
  EXPECT_EQ(Of(0, Category::kActivations), "only the program holds it");
  EXPECT_EQ(Of(0, Category::kOptimizerState), "state of an optimizer");
  EXPECT_EQ(Of(0, Category::kWorkspaces), "");
}

TEST_F(AliveTextsTest, WithoutRolesTheTextIsEmpty) {
  script_.Block(kBlock, 512);
  EXPECT_EQ(Of(0, Category::kActivations), "");
}

}  // namespace
}  // namespace gmt::analysis
