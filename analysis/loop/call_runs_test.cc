#include "analysis/loop/call_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kModule[] = "/site-packages/torch/nn/modules/module.py",
               kOptimizer[] = "/site-packages/torch/optim/optimizer.py";

class CallRunsTest : public ::testing::Test {
 protected:
  void Born(uint32_t stack) { script_.Block(++address_ << 20, 512).stack = stack; }
  void Born(const std::vector<PythonFrame>& places) { Born(PythonStack(script_, places)); }
  // Allocates in a layer of the model that `line` calls.
  void InModel(uint32_t line, uint32_t layer_line = 5) {
    Born({{"forward", "/src/net.py", layer_line},
          {"_call_impl", kModule},
          {"forward", "/src/net.py", 50},
          {"_call_impl", kModule},
          {"main", "/src/train.py", line}});
  }
  std::vector<Step> Find() {
    const Trace trace = script_.Build();
    return BeginsOfCallRuns(trace, RowKinds(trace), script_.definitions());
  }

  EventScript script_;
  uint64_t address_ = 0;
};

TEST_F(CallRunsTest, LayersOfOneCallAreOneRun) {
  for (uint32_t layer = 0; layer < 12; ++layer) InModel(20, layer);
  EXPECT_THAT(Find(), ElementsAre(1));
}

TEST_F(CallRunsTest, AllocationsOfTheLoopItselfEndARun) {
  for (int step = 0; step < 3; ++step) {
    Born({{"main", "/src/train.py", 10}});
    InModel(20, 1);
    InModel(20, 2);
  }
  EXPECT_THAT(Find(), ElementsAre(1, 2, 4, 5, 7, 8));
}

TEST_F(CallRunsTest, CallsFromDifferentLinesAreDifferentRuns) {
  InModel(20), InModel(20), InModel(30);
  EXPECT_THAT(Find(), ElementsAre(1, 3));
}

TEST_F(CallRunsTest, ParametersOfOneOptimizerStepAreOneRun) {
  for (uint32_t parameter = 0; parameter < 5; ++parameter) {
    Born({{"step", "/src/my_adam.py", 82}, {"wrapper", kOptimizer}, {"main", "/src/train.py", 30}});
    Born({{"step", "/src/my_adam.py", 84}, {"wrapper", kOptimizer}, {"main", "/src/train.py", 30}});
  }
  EXPECT_THAT(Find(), ElementsAre(1));
}

TEST_F(CallRunsTest, BackwardPassesWithoutPythonAreRuns) {
  for (int step = 0; step < 2; ++step) {
    InModel(20);
    Born(0), Born(0), Born(0);
  }
  EXPECT_THAT(Find(), ElementsAre(1, 2, 5, 6));
}

TEST_F(CallRunsTest, WithoutModuleCallsEachBirthIsARun) {
  for (int i = 0; i < 4; ++i) Born({{"serve", "/src/serve.py", 3}});
  Born(0), Born(0);
  EXPECT_THAT(Find(), SizeIs(6));
}

TEST_F(CallRunsTest, WindowsPathsAreRecognised) {
  for (int i = 0; i < 3; ++i) {
    Born({{"forward", "C:\\src\\net.py"},
          {"_call_impl", "C:\\lib\\torch\\nn\\modules\\module.py"},
          {"main", "C:\\src\\train.py"}});
  }
  EXPECT_THAT(Find(), ElementsAre(1));
}

}  // namespace
}  // namespace gmt::analysis
