#include "analysis/loop/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/loop/phase_spans.h"
#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class PhasesTest : public ::testing::Test {
 protected:
  uint32_t Stack(const std::vector<PythonFrame>& places) { return PythonStack(script_, places); }
  // Returns a stack as record_function in PyTorch's own files shows it.
  uint32_t StackOf(const char* function, const char* file, uint32_t line = 10) {
    return Stack({{"__call__", "/site-packages/torch/_ops.py"},
                  {"__enter__", "/site-packages/torch/autograd/profiler.py"},
                  {function, file, line},
                  {"main", "/src/train.py"}});
  }
  void Optimizer(const std::vector<uint64_t>& blocks = {}, uint32_t line = 10) {
    script_.Begin("record_function", ++range_).stack =
        StackOf("wrapper", "/site-packages/torch/optim/optimizer.py", line);
    for (uint64_t address : blocks) script_.Block(address, kBlock);
    script_.End("record_function", range_);
  }
  void ZeroGrad(const std::vector<uint64_t>& freed) {
    script_.Begin("record_function", ++range_).stack =
        StackOf("Optimizer.zero_grad", "/site-packages/torch/optim/optimizer.py");
    for (uint64_t address : freed) script_.FreeBlock(address);
    script_.End("record_function", range_);
  }
  void Backward(const std::vector<uint64_t>& born, const std::vector<uint64_t>& freed) {
    script_.Begin("backward", ++range_);
    for (uint64_t address : born) script_.Block(address, kBlock);
    for (uint64_t address : freed) script_.FreeBlock(address);
    script_.End("backward", range_);
  }
  // Runs one step: an activation, a gradient, and in the first step the optimizer's state.
  void TrainingStep(bool first) {
    if (!first) ZeroGrad({0x2000});
    script_.Block(0x1000, kBlock);
    script_.Block(0x1800, kBlock);
    Backward({0x2000}, {0x1000, 0x1800});
    Optimizer(first ? std::vector<uint64_t>{0x3000} : std::vector<uint64_t>{});
  }
  Cycles Find() {
    const Trace trace = script_.Build();
    return FindCycles(trace, RowKinds(trace), script_.definitions(),
                      FindPhaseSpans(trace, script_.definitions()));
  }
  static const PhaseUse& In(const CycleUse& cycle, Phase phase) {
    return cycle.phases[static_cast<size_t>(phase)];
  }

  static constexpr uint64_t kBlock = 512;
  EventScript script_;
  uint64_t range_ = 0;
};

TEST_F(PhasesTest, RangesNamedAfterStepsAreSteps) {
  for (uint64_t step = 0; step < 3; ++step) {
    const std::string name = "Step " + std::to_string(step);
    script_.Begin(name, 1000 + step).domain = script_.builder().InternString("loop");
    TrainingStep(step == 0);
    script_.End(name, 1000 + step);
  }
  const Cycles found = Find();
  EXPECT_EQ(found.source, "range step (loop)");
  ASSERT_THAT(found.cycles, SizeIs(3));
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].cycles[1].peak_phase, Phase::kBackward);
}

TEST_F(PhasesTest, NameWithMostTimeIsTaken) {
  uint64_t outer = 1000;
  for (uint64_t step = 0; step < 2; ++step) {
    script_.Begin("iteration:" + std::to_string(step), ++outer);
    TrainingStep(step == 0);
    script_.Begin("train_step", ++range_);  // some programs give the optimizer's step this name
    script_.End("train_step", range_);
    script_.End("iteration:" + std::to_string(step), outer);
  }
  EXPECT_EQ(Find().source, "range iteration");
}

TEST_F(PhasesTest, NamesThatOnlyContainAStepAreNotSteps) {
  for (const char* name : {"stepping", "first step", "step into 3", "misstep 4", "batch 5", "7"}) {
    for (int i = 0; i < 2; ++i) {
      script_.Begin(name, ++range_);
      script_.Block(0x1000, kBlock);
      script_.FreeBlock(0x1000);
      script_.End(name, range_);
    }
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(PhasesTest, RegionsAreNotCountedInAdditionToTheirBlocks) {
  script_.Begin("step 1", ++range_);
  script_.Block(0x1000, kBlock);
  script_.Region(0x1000, kBlock);
  script_.End("step 1", range_);
  script_.Begin("step 2", ++range_);
  script_.FreeRegion(0x1000);
  script_.FreeBlock(0x1000);
  script_.End("step 2", range_);
  const Cycles found = Find();
  ASSERT_THAT(found.cycles, SizeIs(2));
  EXPECT_EQ(found.devices[0].cycles[0].peak, kBlock);
}

TEST_F(PhasesTest, RecordingWithoutStepsHasNoCycles) {
  script_.Block(0x1000, kBlock);
  Backward({0x2000}, {});
  const Cycles cycles = Find();
  EXPECT_EQ(cycles.source, "");
  EXPECT_THAT(cycles.cycles, IsEmpty());
}

TEST_F(PhasesTest, StepsEndWithTheOptimizersAndHaveTheirPhases) {
  for (int i = 0; i < 4; ++i) TrainingStep(i == 0);
  const Cycles found = Find();
  EXPECT_EQ(found.source, "Optimizer.step");
  ASSERT_THAT(found.cycles, SizeIs(4));
  ASSERT_THAT(found.devices, SizeIs(1));
  const CycleUse& third = found.devices[0].cycles[2];
  EXPECT_EQ(third.live_begin, 2 * kBlock);  // gradient and state
  EXPECT_EQ(third.live_end, 2 * kBlock);
  EXPECT_EQ(third.peak, 4 * kBlock);  // state, gradient, two activations
  EXPECT_EQ(third.peak_phase, Phase::kBackward);
  EXPECT_EQ(In(third, Phase::kForward).peak, 3 * kBlock);
  EXPECT_EQ(In(third, Phase::kForward).change, static_cast<int64_t>(2 * kBlock));
  EXPECT_EQ(In(third, Phase::kBackward).change, -static_cast<int64_t>(kBlock));
  EXPECT_FALSE(In(third, Phase::kOptimizer).present);
  EXPECT_TRUE(In(found.devices[0].cycles[0], Phase::kOptimizer).present);
  EXPECT_EQ(In(third, Phase::kOther).change, -static_cast<int64_t>(kBlock));  // zero_grad
}

TEST_F(PhasesTest, FirstStepOfALateRecordingBeginsWithTheRecording) {
  constexpr int64_t kHour = 3'600'000'000'000;
  for (int i = 0; i < 3; ++i) TrainingStep(i == 0);
  for (format::Event& event : script_.events()) event.t_ns += kHour;
  const Cycles found = Find();
  ASSERT_THAT(found.cycles, SizeIs(3));
  EXPECT_EQ(found.cycles[0].begin_t_ns, kHour + EventScript::kStep_ns);
}

TEST_F(PhasesTest, TypicalStepExcludesTheFirstOne) {
  for (int i = 0; i < 5; ++i) TrainingStep(i == 0);
  const Cycles found = Find();
  const TypicalCycle typical = TypicalOf(found.devices[0]);
  EXPECT_EQ(typical.steps, 4u);
  EXPECT_EQ(typical.peak, 4 * kBlock);
  EXPECT_EQ(typical.peak_phase, Phase::kBackward);
  EXPECT_EQ(typical.steps_with_peak_phase, 4u);
  EXPECT_EQ(typical.growth, 0);
}

TEST_F(PhasesTest, MarksCalledStepTakePrecedence) {
  for (int i = 0; i < 3; ++i) {
    script_.Mark("step", static_cast<uint64_t>(i));
    TrainingStep(i == 0);
  }
  const Cycles found = Find();
  EXPECT_EQ(found.source, "mark step");
  EXPECT_THAT(found.cycles, SizeIs(2));
}

TEST_F(PhasesTest, AccumulationHasAForwardPassForEachBackwardPass) {
  for (int i = 0; i < 3; ++i) {
    script_.Block(0x1000, kBlock);
    Backward({}, {0x1000});
    script_.Block(0x1000, kBlock);
    script_.Block(0x1800, kBlock);
    Backward({}, {0x1000, 0x1800});
    Optimizer();
  }
  const Cycles found = Find();
  ASSERT_THAT(found.cycles, SizeIs(3));
  const CycleUse& second = found.devices[0].cycles[1];
  EXPECT_EQ(In(second, Phase::kForward).times, 2u);
  EXPECT_EQ(In(second, Phase::kForward).change, static_cast<int64_t>(3 * kBlock / 2));
  EXPECT_EQ(In(second, Phase::kBackward).times, 2u);
  EXPECT_EQ(In(second, Phase::kBackward).change, -static_cast<int64_t>(3 * kBlock / 2));
  EXPECT_EQ(second.peak_phase, Phase::kForward);
  EXPECT_EQ(TypicalOf(found.devices[0]).phases[0].times, 2u);
}

TEST_F(PhasesTest, NoPhaseOfAnAccumulationChangesMoreThanItsPeak) {
  for (int i = 0; i < 3; ++i) {
    for (int batch = 0; batch < 8; ++batch) {
      script_.Block(0x1000, kBlock);
      script_.Block(0x1800, kBlock);
      Backward({}, {0x1000, 0x1800});
    }
    Optimizer();
  }
  const PhaseUse forward = In(Find().devices[0].cycles[1], Phase::kForward);
  EXPECT_EQ(forward.peak, 2 * kBlock);
  EXPECT_EQ(forward.change, static_cast<int64_t>(2 * kBlock));
}

TEST_F(PhasesTest, MemoryLeftByAPassIsNotFreedInTheNextForwardPass) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0) script_.FreeBlock(0x1800);  // del logits
    script_.Block(0x1000, kBlock);
    script_.Block(0x1800, kBlock);
    Backward({}, {0x1000});
    Optimizer();
  }
  const CycleUse third = Find().devices[0].cycles[2];
  EXPECT_EQ(In(third, Phase::kForward).change, static_cast<int64_t>(2 * kBlock));
  EXPECT_EQ(In(third, Phase::kOther).change, -static_cast<int64_t>(kBlock));
}

TEST_F(PhasesTest, InitEndsWhereTheFirstStepRepeatsInTheSecond) {
  const uint32_t load = Stack({{"load", "/src/train.py"}});
  const uint32_t forward = Stack({{"Net.forward", "/src/net.py"}});
  for (int i = 0; i < 3; ++i) {
    if (i == 0) script_.Block(0x8000, 4 * kBlock).stack = load;
    script_.Block(0x1000, kBlock).stack = forward;
    Backward({}, {0x1000});
    Optimizer();
  }
  const Cycles found = Find();
  const CycleUse &first = found.devices[0].cycles[0], &second = found.devices[0].cycles[1];
  EXPECT_EQ(In(first, Phase::kInit).change, static_cast<int64_t>(4 * kBlock));
  EXPECT_EQ(In(first, Phase::kForward).change, static_cast<int64_t>(kBlock));
  EXPECT_FALSE(In(second, Phase::kInit).present);
}

TEST_F(PhasesTest, ValidationBetweenTwoStepsIsNotAForwardPass) {
  const uint32_t forward =
      Stack({{"Net.forward", "/src/net.py"}, {"Net.training_step", "/src/a.py"}});
  const uint32_t validation =
      Stack({{"Net.forward", "/src/net.py"}, {"Net.validation_step", "/src/a.py"}});
  for (int i = 0; i < 4; ++i) {
    if (i == 2) {
      script_.Block(0x5000, 8 * kBlock).stack = validation;
      script_.FreeBlock(0x5000);
    }
    script_.Block(0x1000, kBlock).stack = forward;
    Backward({}, {0x1000});
    Optimizer();
  }
  const Cycles found = Find();
  const CycleUse &second = found.devices[0].cycles[1], &third = found.devices[0].cycles[2];
  EXPECT_EQ(third.peak_phase, Phase::kEvaluation);
  EXPECT_EQ(In(third, Phase::kEvaluation).peak, 8 * kBlock);
  EXPECT_EQ(In(third, Phase::kForward).peak, kBlock);
  EXPECT_FALSE(In(second, Phase::kEvaluation).present);
}

TEST_F(PhasesTest, StepThatBeginsWithAMarkHasNoInit) {
  for (int i = 0; i < 3; ++i) {
    script_.Mark("step", 0);
    if (i == 0) script_.Block(0x8000, kBlock).stack = Stack({{"load", "/src/train.py"}});
    script_.Block(0x1000, kBlock).stack = Stack({{"Net.forward", "/src/net.py"}});
    Backward({}, {0x1000});
  }
  EXPECT_FALSE(In(Find().devices[0].cycles[0], Phase::kInit).present);
}

TEST_F(PhasesTest, WithTwoOptimizersAStepEndsAfterTheSecond) {
  for (int i = 0; i < 3; ++i) {
    script_.Block(0x1000, kBlock);
    Backward({}, {});
    Optimizer({}, 11);
    script_.FreeBlock(0x1000);
    Optimizer({}, 12);
  }
  const Cycles found = Find();
  ASSERT_THAT(found.cycles, SizeIs(3));
  EXPECT_EQ(found.devices[0].cycles[1].live_end, 0u);
}

TEST_F(PhasesTest, WithoutAnOptimizerBackwardPassesEndSteps) {
  for (int i = 0; i < 3; ++i) {
    script_.Block(0x1000, kBlock);
    Backward({}, {0x1000});
  }
  EXPECT_EQ(Find().source, "backward");
}

TEST_F(PhasesTest, StepWithoutABackwardPassHasNoForwardPass) {
  for (int i = 0; i < 3; ++i) {
    script_.Mark("step", 0);
    script_.Block(0x1000 * (1 + static_cast<uint64_t>(i)), kBlock);
  }
  const Cycles found = Find();
  EXPECT_FALSE(In(found.devices[0].cycles[0], Phase::kForward).present);
  EXPECT_TRUE(In(found.devices[0].cycles[0], Phase::kOther).present);
  EXPECT_EQ(TypicalOf(found.devices[0]).growth, static_cast<int64_t>(kBlock));
}

TEST(PhaseNamesTest, MemoryOutsideOfThePhasesIsNotSaidToBeInOne) {
  EXPECT_EQ(InPhase(Phase::kForward), "in forward");
  EXPECT_EQ(InPhase(Phase::kOther), "outside of the phases");
}

TEST_F(PhasesTest, WithoutBlocksDriverMemoryCounts) {
  script_.Pinned(0x900000, 1 << 20);
  for (int i = 0; i < 3; ++i) {
    script_.Mark("step", 0);
    script_.Alloc(0x10000, 4096);
    script_.Free(0x10000);
  }
  const Cycles found = Find();
  ASSERT_THAT(found.devices, SizeIs(1));
  EXPECT_EQ(found.devices[0].cycles[0].peak, 4096u);
}

TEST_F(PhasesTest, EachDeviceHasItsOwnPeak) {
  for (int i = 0; i < 3; ++i) {
    script_.Mark("step", 0);
    script_.Block(0x10000, 512);
    script_.Block(0x80000, 1024).device = 1;
    script_.FreeBlock(0x10000);
    script_.FreeBlock(0x80000).device = 1;
  }
  const Cycles found = Find();
  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_EQ(found.devices[0].cycles[1].peak, 512u);
  EXPECT_EQ(found.devices[1].cycles[1].peak, 1024u);
}

// ---- Kinds of ranges

TEST_F(PhasesTest, RecordFunctionsAreIdentifiedByTheirCaller) {
  const auto kind = [this](uint32_t stack) {
    Range range;
    range.name = "record_function";
    range.stack = stack;
    return KindOfRange(range, script_.definitions());
  };
  const uint32_t step = StackOf("wrapper", "/x/torch/optim/optimizer.py");
  const uint32_t zero = StackOf("zero_grad", "/x/torch/optim/optimizer.py");
  const uint32_t next = StackOf("__next__", "/x/torch/utils/data/dataloader.py");
  const uint32_t profiler = StackOf("step", "/x/torch/profiler/profiler.py");
  const uint32_t own = StackOf("load", "/src/train.py", 31);
  EXPECT_EQ(kind(step), "Optimizer.step");
  EXPECT_EQ(kind(zero), "Optimizer.zero_grad");
  EXPECT_EQ(kind(next), "DataLoader.next");
  EXPECT_EQ(kind(profiler), "ProfilerStep");
  EXPECT_EQ(kind(own), "load (train.py:31)");
  EXPECT_EQ(kind(0), "record_function");
}

TEST_F(PhasesTest, RangesOfImportedRecordingsHaveNames) {
  const auto kind = [this](const char* name) {
    Range range;
    range.name = name;
    return KindOfRange(range, script_.definitions());
  };
  EXPECT_EQ(kind("Optimizer.step#Adam.step"), "Optimizer.step");
  EXPECT_EQ(kind("Optimizer.zero_grad#Adam.zero_grad"), "Optimizer.zero_grad");
  EXPECT_EQ(kind("ProfilerStep#3"), "ProfilerStep");
  EXPECT_EQ(kind("forward"), "forward");
}

}  // namespace
}  // namespace gmt::analysis
