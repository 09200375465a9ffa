#include "analysis/loop/cycle_anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analysis/loop/phase_spans.h"
#include "analysis/loop/phases.h"
#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class CycleAnchorTest : public ::testing::Test {
 protected:
  uint32_t Stack(const std::vector<PythonFrame>& places) { return PythonStack(script_, places); }
  uint64_t Hold(uint32_t stack) {
    script_.Block(++address_ << 20, 512).stack = stack;
    return address_ << 20;
  }
  void Brief(uint32_t stack) { script_.FreeBlock(Hold(stack)); }
  // Runs a forward pass of `layers` lines, freed at the end.
  void Pass(uint32_t layers) {
    std::vector<uint64_t> held;
    for (uint32_t layer = 0; layer < layers; ++layer)
      held.push_back(
          Hold(Stack({{"forward", "/src/net.py", layer + 1}, {"main", "/src/a.py", 9}})));
    for (const uint64_t block : held) script_.FreeBlock(block);
  }
  void OptimizerStep(uint32_t line) {
    Brief(Stack({{"_foreach_add", "/site-packages/torch/optim/adam.py", 50},
                 {"step", "/site-packages/torch/optim/optimizer.py", 70},
                 {"main", "/src/a.py", line}}));
  }
  Cycles Find() {
    const Trace trace = script_.Build();
    return FindCycles(trace, RowKinds(trace), script_.definitions(),
                      FindPhaseSpans(trace, script_.definitions()));
  }

  EventScript script_;
  uint64_t address_ = 0;
};

TEST_F(CycleAnchorTest, BurstsOfAnOptimizerEndSteps) {
  for (int step = 0; step < 5; ++step) {
    Pass(3);
    OptimizerStep(20);
    OptimizerStep(20);
  }
  const Cycles found = Find();
  EXPECT_TRUE(found.inferred);
  EXPECT_EQ(found.source, "memory of Optimizer.step");
  EXPECT_THAT(found.cycles, SizeIs(5));
}

TEST_F(CycleAnchorTest, LaterOfTwoOptimizersEndsTheStep) {
  for (int step = 0; step < 5; ++step) {
    Pass(2);
    OptimizerStep(20);
    Pass(3);
    OptimizerStep(30);
  }
  const Cycles found = Find();
  ASSERT_THAT(found.cycles, SizeIs(5));
  EXPECT_EQ(found.cycles.back().end, 5 * (4 + 2 + 6 + 2) - 1u);  // its last birth
}

TEST_F(CycleAnchorTest, StacksThatRecurAreAnchors) {
  for (int step = 0; step < 20; ++step) Pass(4);
  const Cycles found = Find();
  EXPECT_TRUE(found.inferred);
  EXPECT_THAT(found.source, HasSubstr("and 3 more that recur with it"));
  ASSERT_THAT(found.cycles, SizeIs(20));
  // Nothing is held between two passes.
  EXPECT_EQ(found.cycles[3].end, found.cycles[2].end + 8);
  EXPECT_EQ(found.cycles[3].end % 8, 0u);
}

// What was held is examined in blocks of 4,096 states, and a cycle here has 5,000.
TEST_F(CycleAnchorTest, LongCyclesEndWhereLeastIsHeld) {
  const uint32_t middle = Stack({{"save", "/src/b.py", 7}}),
                 begin = Stack({{"load", "/src/a.py", 3}}),
                 work = Stack({{"work", "/src/c.py", 5}});
  for (int step = 0; step < 12; ++step) {
    const uint64_t held = Hold(begin);
    for (int i = 0; i < 2500; ++i) Brief(work);
    Brief(middle);
    script_.FreeBlock(held);
  }
  const Cycles found = Find();
  EXPECT_EQ(found.source, "stack " + std::to_string(begin) + " and 1 more that recur with it");
  EXPECT_THAT(found.cycles, SizeIs(12));
}

TEST_F(CycleAnchorTest, OccasionalEvaluationsAreNotACycle) {
  for (int step = 0; step < 60; ++step) {
    Pass(6);
    for (int i = 0; step % 10 == 9 && i < 100; ++i) {
      Brief(Stack({{"evaluate", "/src/eval.py", 3}}));
      Brief(Stack({{"metric", "/src/eval.py", 4}}));
    }
  }
  EXPECT_THAT(Find().cycles, SizeIs(60));
}

TEST_F(CycleAnchorTest, LayersOfOneLineAreNotACycle) {
  for (int step = 0; step < 20; ++step) {
    std::vector<uint64_t> held;
    const auto hold = [&](uint32_t line) {
      held.push_back(Hold(Stack({{"forward", "/src/net.py", line}, {"main", "/src/a.py", 9}})));
    };
    hold(1);
    hold(2);
    for (int layer = 0; layer < 12; ++layer) hold(10), hold(11);
    hold(3);
    hold(4);
    for (const uint64_t block : held) script_.FreeBlock(block);
  }
  EXPECT_THAT(Find().cycles, SizeIs(20));
}

TEST_F(CycleAnchorTest, LayersOfOneCallOfTheModelAreNotCycles) {
  const auto layer = [&](uint32_t line) {
    return Stack({{"forward", "/src/block.py", line},
                  {"_call_impl", "/site-packages/torch/nn/modules/module.py"},
                  {"forward", "/src/net.py", 50},
                  {"_call_impl", "/site-packages/torch/nn/modules/module.py"},
                  {"main", "/src/a.py", 9}});
  };
  for (int i = 0; i < 32; ++i) {
    for (uint32_t line = 1; line <= 4; ++line) Brief(layer(line));
    Hold(layer(5));
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, CallsOfTheModelWithAllocationsBetweenThemAreCycles) {
  for (int step = 0; step < 20; ++step) {
    Brief(Stack({{"main", "/src/a.py", 8}}));
    for (int i = 0; i < 6; ++i) {
      for (uint32_t line = 1; line <= 4; ++line) {
        Brief(Stack({{"forward", "/src/block.py", line},
                     {"_call_impl", "/site-packages/torch/nn/modules/module.py"},
                     {"main", "/src/a.py", 9}}));
      }
    }
  }
  EXPECT_THAT(Find().cycles, SizeIs(20));
}

TEST_F(CycleAnchorTest, NodesOfOneBackwardPassAreNotCycles) {
  format::FrameInfo engine;
  engine.function =
      script_.builder().InternString("torch::autograd::Engine::evaluate_function(int)");
  const uint32_t frame = script_.builder().InternFrame(engine);
  const auto node = [&](uint32_t line) {
    format::FrameInfo own;
    own.function = script_.builder().InternString("MyFunction.backward");
    own.file = script_.builder().InternString("/src/my_function.py");
    own.line = line;
    own.language = format::Language::kPython;
    return script_.builder().InternStack({script_.builder().InternFrame(own), frame}, 0);
  };
  for (int i = 0; i < 32; ++i) {
    for (uint32_t line = 1; line <= 3; ++line) Brief(node(line));
    Hold(node(4));
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, FewFiringsAreNotACycle) {
  for (int step = 0; step < 7; ++step) Pass(4);
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, OneAnchorAloneIsNotACycle) {
  for (int step = 0; step < 50; ++step) Pass(1);
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, IrregularStacksAreNotACycle) {
  uint32_t random = 7;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525 + 1013904223;
    const uint32_t line = (random >> 16) % 13;
    Brief(Stack({{"serve", "/src/serve.py", line}, {"main", "/src/serve.py", 99}}));
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, AnchorsThatAllFireMidwayAreNotACycle) {
  // Memory decreases only while no recurring stack allocates.
  uint64_t kept = 0;
  for (int step = 0; step < 30; ++step) {
    script_.Block(++address_ << 20, 1 << 20).stack = 0;
    const uint64_t big = address_ << 20;
    Brief(Stack({{"a", "/src/a.py", 1}}));
    Brief(Stack({{"b", "/src/a.py", 2}}));
    if (kept != 0) script_.FreeBlock(kept);
    kept = 0;
    script_.FreeBlock(big);
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(CycleAnchorTest, MarksTakePrecedenceOverInference) {
  for (uint64_t step = 0; step < 20; ++step) {
    script_.Mark("step", step);
    Pass(4);
  }
  const Cycles found = Find();
  EXPECT_FALSE(found.inferred);
  EXPECT_THAT(found.source, StartsWith("mark"));
}

}  // namespace
}  // namespace gmt::analysis
