#include "analysis/oom/optimizer.h"

#include <gtest/gtest.h>

#include "analysis/testing/python_stack.h"

namespace gmt::analysis {
namespace {

#define TORCH "/usr/lib/python3/site-packages/torch/optim/"

class OptimizerTest : public ::testing::Test {
 protected:
  // Creates an optimizer with these frames between Optimizer.__init__ and the program.
  void Create(std::vector<PythonFrame> constructors) {
    constructors.insert(constructors.begin(), {"Optimizer.__init__", TORCH "optimizer.py"});
    constructors.push_back({"main", "/src/train.py", 30});
    script_.Begin("Optimizer.__init__", ++ranges_).stack = PythonStack(script_, constructors);
    script_.End("Optimizer.__init__", ranges_);
  }
  Optimizer Find(int64_t t_ns = INT64_MAX) {
    const Trace trace = script_.Build();
    return FindOptimizer(Examination(trace, script_.definitions()), t_ns);
  }

  EventScript script_;
  uint64_t ranges_ = 0;
};

TEST_F(OptimizerTest, WithoutAConstructorAdamIsAssumed) {
  script_.Begin("Optimizer.step#Adam.step", 1);
  const Optimizer optimizer = Find();
  EXPECT_EQ(optimizer.name, "");
  EXPECT_FALSE(optimizer.is_known);
  EXPECT_EQ(optimizer.least_state, 2u);
  EXPECT_EQ(optimizer.most_state, 2u);
}

TEST_F(OptimizerTest, SgdKeepsStateOnlyWithMomentum) {
  Create({{"SGD.__init__", TORCH "sgd.py"}});
  const Optimizer optimizer = Find();
  EXPECT_EQ(optimizer.name, "SGD");
  EXPECT_EQ(optimizer.place, "train.py:30");
  EXPECT_TRUE(optimizer.is_known);
  EXPECT_EQ(optimizer.least_state, 0u);
  EXPECT_EQ(optimizer.most_state, 1u);
}

TEST_F(OptimizerTest, ClassThatDerivesFromAnotherHasItsOwnName) {
  Create({{"Adam.__init__", TORCH "adam.py"}, {"AdamW.__init__", TORCH "adamw.py"}});
  EXPECT_EQ(Find().name, "AdamW");
}

TEST_F(OptimizerTest, PythonWithoutQualifiedNamesHasTheFile) {
  Create({{"__init__", TORCH "rmsprop.py"}});
  EXPECT_EQ(Find().name, "RMSprop");
  EXPECT_EQ(Find().least_state, 1u);
}

TEST_F(OptimizerTest, TrainerWhoseConstructorCreatesItIsNotItsClass) {
  Create({{"Adagrad.__init__", TORCH "adagrad.py"}, {"Trainer.__init__", "/src/trainer.py", 7}});
  EXPECT_EQ(Find().name, "Adagrad");
  EXPECT_EQ(Find().place, "trainer.py:7");
  EXPECT_TRUE(Find().makes_state_at_once);
}

TEST_F(OptimizerTest, ProgramsOwnClassIsNamedWithTheLineThatCreatedIt) {
  Create({{"main.<locals>.Lion.__init__", "/src/lion.py"}});
  const Optimizer optimizer = Find();
  EXPECT_EQ(optimizer.name, "Lion");
  EXPECT_EQ(optimizer.place, "train.py:30");
  EXPECT_FALSE(optimizer.is_known);
  EXPECT_EQ(optimizer.least_state, 2u);
}

TEST_F(OptimizerTest, OwnClassThatDerivesFromAdamKeepsItsState) {
  Create({{"Adam.__init__", TORCH "adam.py"}, {"Clipped.__init__", "/src/clipped.py"}});
  EXPECT_TRUE(Find().is_known);
  EXPECT_EQ(Find().name, "Adam");
}

TEST_F(OptimizerTest, OptimizerThatIsCreatedLaterDoesNotCount) {
  script_.Mark("step", 0);
  Create({{"SGD.__init__", TORCH "sgd.py"}});
  EXPECT_EQ(Find(0).name, "");
}

#undef TORCH

}  // namespace
}  // namespace gmt::analysis
