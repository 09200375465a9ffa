#include "analysis/categories/categories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/examination/layers.h"
#include "analysis/testing/categories_fixture.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

TEST_F(CategoriesTest, PlainLoopHasAllCategories) {
  Loop();
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kBatch, 2), Category::kInputs);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(ConfidenceOf(kGradient, 2), Confidence::kHigh);
  EXPECT_THAT(ReasonOf(kGradient, 2), HasSubstr("of a parameter's size"));
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
  EXPECT_EQ(ConfidenceOf(kState), Confidence::kHigh);
  for (size_t n = 0; n < 9; ++n) EXPECT_EQ(Of(kTemporary, n), Category::kTemporaries) << n;
}

// ---- Roles reported by PyTorch ------------------------------------------------------------------

TEST_F(CategoriesTest, RolesTakePrecedenceOverLivesAndCode) {
  s_.script().Role(0, 0);  // no allocation at this address
  s_.Block(kParameter, kWeightBytes, s_.InForward());
  s_.script().Role(kParameter, format::kRoleParameter);
  for (int i = 0; i < 4; ++i) {
    // Freed in the phase of its birth; without roles, a temporary.
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.script().Role(kActivation, format::kRoleSaved, "SoftmaxBackward0");
    s_.Free(kActivation);
    s_.Backward([&] { s_.Block(kGradient, kOtherBytes, s_.InBackward("MmBackward0")); });
    s_.script().Role(kGradient, format::kRoleGradient);
    s_.Optimizer([&] { s_.Block(kTemporary, 512, 0), s_.Free(kTemporary); });
    s_.Free(kGradient);
  }
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(ReasonOf(kActivation, 2), "observed: saved for backward by SoftmaxBackward0");
  EXPECT_EQ(ConfidenceOf(kActivation, 2), Confidence::kHigh);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_THAT(ReasonOf(kGradient, 2), HasSubstr("observed"));
}

TEST_F(CategoriesTest, ParametersOfInferenceAreKnownAlthoughFreedAtTheEnd) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.script().Role(kParameter, format::kRoleParameter);
  s_.Block(kActivation, kOtherBytes, s_.InForward());
  s_.Free(kActivation);
  s_.Free(kParameter);
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kActivation), Category::kTemporaries);
}

TEST_F(CategoriesTest, TransientLeafIsNotAParameterAndHasNoGradient) {
  for (int i = 0; i < 4; ++i) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      s_.script().Role(kActivation, format::kRoleParameter);
      s_.Block(kGradient, kOtherBytes, s_.InBackward("MmBackward0"));
      s_.script().Role(kGradient, format::kRoleGradient);
      s_.Free(kGradient);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] { s_.Block(kTemporary, 512, 0), s_.Free(kTemporary); });
  }
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 2), Category::kTemporaries);
}

TEST_F(CategoriesTest, SavedBatchIsStillInputs) {
  for (int i = 0; i < 4; ++i) {
    s_.Block(kBatch, kBatchBytes, s_.Batch());
    s_.script().Role(kBatch, format::kRoleSaved, "AddmmBackward0");
    s_.Backward(
        [&] { s_.Block(kGradient, 512, s_.InBackward("MmBackward0")), s_.Free(kGradient); });
    s_.Optimizer([&] { s_.Block(kTemporary, 512, 0), s_.Free(kTemporary); });
    s_.Free(kBatch);
  }
  EXPECT_EQ(Of(kBatch, 2), Category::kInputs);
}

TEST_F(CategoriesTest, LogWithoutRangesIsClassifiedByItsStacks) {
  s_.with_ranges = false;
  Loop();
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
  EXPECT_EQ(Of(kTemporary, 4), Category::kTemporaries);  // of a backward pass
}

TEST_F(CategoriesTest, WithoutStacksLivesAndSizesDecide) {
  Loop();
  for (format::Event& event : s_.script().events()) {
    event.stack = 0;
  }
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(ConfidenceOf(kParameter), Confidence::kMedium);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
  EXPECT_EQ(Of(kTemporary, 4), Category::kTemporaries);
}

TEST_F(CategoriesTest, CopyOfTheModelIsParameters) {
  Loop(3);
  s_.Block(0x70000, kWeightBytes,
           s_.Stack({{"at::native::clone(at::Tensor const&)"},
                     {"deepcopy", "/usr/lib/python3.11/copy.py"},
                     {"AveragedModel.__init__", s_.Torch("optim/swa_utils.py")}}));
  for (int i = 3; i < 8; ++i) TrainingStep(i);
  EXPECT_EQ(Of(0x70000), Category::kParameters);
}

TEST_F(CategoriesTest, MemoryFromBeforeIsClassifiedByTheNumberOfGradientsOfItsSize) {
  for (const uint64_t at : {0x1000u, 0x3000u, 0x5000u}) {  // weight and two states, no birth seen
    s_.script().FreeBlock(at);
    auto& event = s_.script().events().back();
    event.present |= format::kHasSize;
    event.size = kWeightBytes;
  }
  auto& events = s_.script().events();
  std::vector<format::Event> frees(events.end() - 3, events.end());
  events.resize(events.size() - 3);
  for (int i = 0; i < 5; ++i) TrainingStep(i);
  for (format::Event& free : frees) {
    free.t_ns = static_cast<int64_t>(events.size() + 1) * EventScript::kStep_ns;
    events.push_back(free);
  }
  EXPECT_EQ(Of(0x1000), Category::kParameters);
  EXPECT_EQ(ConfidenceOf(0x1000), Confidence::kLow);
  EXPECT_EQ(Of(0x3000), Category::kOptimizerState);
  EXPECT_EQ(Of(0x5000), Category::kOptimizerState);
}

TEST_F(CategoriesTest, BlocksFromBeforeAreClassifiedByWhatFreesThem) {
  // A parameter that stays, its old gradient, and its old state, which the step replaces.
  FreeFromBefore(0x3000,
                 s_.Stack({{"Optimizer.zero_grad", TrainingScript::Torch("optim/optimizer.py")},
                           {"main", "/src/train.py"}}));
  s_.Block(kActivation, kOtherBytes, s_.InForward());
  s_.Backward([&] {
    s_.Block(kGradient, kWeightBytes, s_.InBackward("MmBackward0"));
    s_.Free(kActivation);
  });
  const uint32_t own_step = OwnOptimizersStep();
  s_.Block(kState, kWeightBytes, own_step);
  FreeFromBefore(0x5000, own_step);
  s_.Block(kTemporary, 512, own_step);
  s_.Free(kTemporary);
  FreeFromBefore(0x1000, 0);
  EXPECT_EQ(Of(0x1000), Category::kParameters);
  EXPECT_EQ(Of(0x3000), Category::kGradients);
  EXPECT_THAT(ReasonOf(0x3000), HasSubstr("zero_grad"));
  EXPECT_EQ(Of(0x5000), Category::kOptimizerState);
  EXPECT_EQ(Of(kState), Category::kOptimizerState);
}

TEST_F(CategoriesTest, RequestedSizesAreComparedNotBlockSizes) {
  const auto ask = [](format::Event& event, uint64_t bytes) {
    event.present |= format::kHasRequested;
    event.requested = bytes;
  };
  // The allocator did not split the block that it found for the gradient.
  constexpr uint64_t kAsked = 40'960'000, kRounded = 41'943'040;
  for (int i = 0; i < 3; ++i) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Backward([&] {
      if (i > 0) s_.Free(kGradient);
      ask(s_.Block(kGradient, kRounded, s_.InBackward("MmBackward0")), kAsked);
      s_.Free(kActivation);
    });
    s_.Optimizer([&] { s_.Block(kTemporary, 512, s_.State()), s_.Free(kTemporary); });
  }
  ask(FreeFromBefore(0x1000, 0, kAsked), kAsked);
  ask(FreeFromBefore(0x4000'0000, 0, kRounded), kRounded);  // no gradient of this requested size
  EXPECT_EQ(Of(0x1000), Category::kParameters);
  EXPECT_NE(Of(0x4000'0000), Category::kParameters);
}

TEST_F(CategoriesTest, SavedMemoryFromBeforeAnAttachThatStaysIsAWeightWithoutAGradient) {
  constexpr uint64_t kFrozen = 0x90000;
  s_.script().Api(s_.script().Block(kFrozen, kOtherBytes), kBeforeAttachApi);
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.script().Role(kParameter, format::kRoleParameter);
  for (int step = 0; step < 4; ++step) {
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.script().Role(kActivation, format::kRoleSaved, "MmBackward0");
    s_.script().Role(kFrozen, format::kRoleSaved, "MmBackward0");
    s_.Backward([&] {
      s_.script().Role(kFrozen, 0);
      s_.Free(kActivation);
    });
  }
  EXPECT_EQ(Of(kFrozen), Category::kParameters);
  EXPECT_EQ(Of(kActivation, 2), Category::kActivations);
}

TEST_F(CategoriesTest, MemoryBeforeAndAfterAForwardPassIsParameters) {
  for (int i = 0; i < 3; ++i) s_.Block(kActivation + 0x1000 * i, kOtherBytes, s_.InForward());
  FreeFromBefore(0x1000, 0);
  EXPECT_EQ(Of(0x1000), Category::kParameters);
  EXPECT_EQ(ConfidenceOf(0x1000), Confidence::kLow);
  EXPECT_EQ(Of(kActivation), Category::kActivations);
}

TEST_F(CategoriesTest, ReasonOfBlocksWithoutAStackMentionsNoStack) {
  Loop();
  s_.script().Block(0x70000, 12345 * 512);
  EXPECT_EQ(Of(0x70000), Category::kUnknown);
  EXPECT_THAT(ReasonOf(0x70000), HasSubstr("no stack"));
}

TEST_F(CategoriesTest, TensorsThatTheLoopKeepsAreNoInputs) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int i = 0; i < 6; ++i) {
    s_.Block(0x100000u + static_cast<uint64_t>(i) * 0x2000, kOtherBytes, s_.Batch());
    TrainingStep(i);
  }
  EXPECT_EQ(Of(0x102000), Category::kUnknown);
  EXPECT_THAT(ReasonOf(0x102000), HasSubstr("kept by the program; train.py:10"));
}

TEST_F(CategoriesTest, CopiesOfAParameterThatTheLoopKeepsAreNoParameters) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.script().Role(kParameter, format::kRoleParameter);
  const uint32_t stack = s_.Stack({{"keep_a_copy", "/src/train.py"}});
  for (int i = 0; i < 6; ++i) {
    s_.Block(0x100000u + static_cast<uint64_t>(i) * kWeightBytes, kWeightBytes, stack);
    TrainingStep(i);
  }
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(0x100000 + 2 * kWeightBytes), Category::kUnknown);
  EXPECT_THAT(ReasonOf(0x100000 + 2 * kWeightBytes), HasSubstr("kept by the program"));
}

TEST_F(CategoriesTest, CopiesOfParametersInFloat32AreStateOfTheOptimizer) {
  s_.Block(0x70000, 2 * kWeightBytes, s_.Stack({{"master_copies", "/src/train.py"}}));
  Loop();
  EXPECT_EQ(Of(0x70000), Category::kOptimizerState);
  EXPECT_EQ(ConfidenceOf(0x70000), Confidence::kLow);
}

TEST_F(CategoriesTest, MemoryBornInACaptureBelongsToAGraphsPool) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.script().Graph("begin_capture", 7);
  OnStream(s_.Block(kActivation, kOtherBytes, s_.InForward()), 7);
  OnStream(s_.Block(kTemporary, kOtherBytes, s_.InForward()), 8);
  s_.script().Graph("end_capture", 7);
  EXPECT_EQ(Of(kActivation), Category::kGraphPools);
  EXPECT_NE(Of(kTemporary), Category::kGraphPools);
}

TEST_F(CategoriesTest, WithPythonOnlyStacksMemoryWithoutAStackIsOfTheBackwardPass) {
  s_.with_ranges = false;
  const uint32_t forward = s_.Stack({{"Net.forward", "C:\\src\\model.py"},
                                     {"Module._call_impl", "C:\\torch\\nn\\modules\\module.py"},
                                     {"main", "C:\\src\\train.py"}});
  const uint32_t apply = s_.Stack({{"Module._apply", "C:\\torch\\nn\\modules\\module.py"}});
  s_.Block(kParameter, kWeightBytes, apply);
  for (int i = 0; i < 3; ++i) {
    if (i > 0) s_.Free(kGradient);
    s_.Block(kActivation, kOtherBytes, forward);
    s_.Block(kTemporary, kOtherBytes, 0);
    s_.Block(kGradient, kWeightBytes, 0);
    s_.Free(kActivation);
    s_.Free(kTemporary);
  }
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kActivation, 1), Category::kActivations);
  EXPECT_EQ(Of(kGradient, 1), Category::kGradients);
  EXPECT_EQ(Of(kTemporary, 1), Category::kTemporaries);
}

TEST_F(CategoriesTest, WeightsFreedAfterTheLastAllocationLivedThroughoutInference) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int i = 0; i < 3; ++i)
    s_.Block(kTemporary, kOtherBytes, s_.InForward()), s_.Free(kTemporary);
  s_.Free(kParameter);
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kTemporary, 2), Category::kTemporaries);
}

TEST_F(CategoriesTest, EachDeviceHasItsOwnBackwardThread) {
  for (uint32_t device : {0u, 1u}) {
    s_.Block(kParameter + device, kWeightBytes, s_.Parameter()).device = static_cast<int>(device);
  }
  for (int step = 0; step < 4; ++step) {
    for (uint32_t device : {0u, 1u}) {
      s_.Block(kActivation + device, kOtherBytes, s_.InForward()).device = static_cast<int>(device);
    }
    s_.Backward([&] {
      for (uint32_t device : {0u, 1u}) {
        s_.Block(kGradient + device, kWeightBytes, s_.InBackward("MmBackward0")).device =
            static_cast<int>(device);
        s_.Free(kActivation + device);
      }
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(kState, kWeightBytes, s_.State());
    });
    for (uint32_t device : {0u, 1u}) s_.Free(kGradient + device);
  }
  EXPECT_EQ(Of(kGradient, 2), Category::kGradients);
  EXPECT_EQ(Of(kGradient + 1, 2), Category::kGradients);
  EXPECT_EQ(Of(kActivation + 1, 2), Category::kActivations);
}

TEST_F(CategoriesTest, ForwardMemoryThatIsNeverFreedIsAKeptActivation) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int i = 0; i < 6; ++i) {
    s_.Block(0x100000u + static_cast<uint64_t>(i) * 0x2000, kOtherBytes, s_.InForward());
    TrainingStep(i);
  }
  EXPECT_EQ(Of(0x100000), Category::kActivations);
  EXPECT_EQ(ConfidenceOf(0x100000), Confidence::kLow);
}

TEST_F(CategoriesTest, ActivationsFreedByAnOomAreNotTemporaries) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  s_.Block(kActivation, kOtherBytes, s_.InForward());
  s_.script().FailedBlock(uint64_t{1} << 40);
  s_.Free(kActivation);
  EXPECT_EQ(Of(kActivation), Category::kActivations);
  EXPECT_THAT(ReasonOf(kActivation), HasSubstr("ran out"));
  EXPECT_EQ(Of(kParameter), Category::kParameters);
}

TEST_F(CategoriesTest, OomInALaterStepUsesEarlierAllocationsOfTheSameCode) {
  Loop(3);
  s_.Block(kTemporary, 512, s_.InForward("at::native::softmax"));
  s_.Block(kActivation, kOtherBytes, s_.InForward());
  s_.script().FailedBlock(uint64_t{1} << 40);
  s_.Free(kTemporary);
  s_.Free(kActivation);
  EXPECT_EQ(Of(kActivation, 3), Category::kActivations);
  EXPECT_EQ(Of(kTemporary, 9), Category::kTemporaries);
}

TEST_F(CategoriesTest, InferenceHasParametersInputsAndTemporaries) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  for (int i = 0; i < 3; ++i) {
    if (i > 0) s_.Free(kBatch);
    s_.Block(kBatch, kBatchBytes, s_.Batch());
    s_.Block(kTemporary, kOtherBytes, s_.InForward());
    s_.Free(kTemporary);
  }
  s_.Block(0x70000, kOtherBytes,
           s_.Stack({{"at::cat(int)"}, {"DynamicLayer.update", "/x/transformers/cache_utils.py"}}));
  EXPECT_EQ(Of(kParameter), Category::kParameters);
  EXPECT_EQ(Of(kBatch, 1), Category::kInputs);
  EXPECT_EQ(Of(kTemporary, 1), Category::kTemporaries);
  EXPECT_EQ(Of(0x70000), Category::kKvCache);
}

TEST_F(CategoriesTest, OutputsThatAnInferenceLoopKeepsAreNoTemporaries) {
  s_.Block(kParameter, kWeightBytes, s_.Parameter());
  const uint32_t stack = s_.InForward();
  for (uint64_t i = 0; i < 8; ++i) {
    s_.script().Mark("step", i);
    s_.Block(kTemporary, kOtherBytes, stack);
    s_.Free(kTemporary);
    s_.Block(0x100000 + i * 0x2000, kOtherBytes, stack);
  }
  for (uint64_t i = 0; i < 8; ++i) s_.Free(0x100000 + i * 0x2000);
  EXPECT_EQ(Of(kTemporary, 5), Category::kTemporaries);
  EXPECT_EQ(Of(0x104000), Category::kUnknown);
  EXPECT_THAT(ReasonOf(0x104000), HasSubstr("kept by the program; model.py"));
  EXPECT_EQ(Of(kParameter), Category::kParameters);
}

TEST_F(CategoriesTest, WorkspacesAndDriverMemoryAreClassifiedByTheirLibrary) {
  Loop(2);
  s_.Block(0x70000, 8519680,
           s_.Stack({{"at::cuda::getCUDABlasLtWorkspace()"}, {"Net.forward", "/src/model.py"}}));
  s_.script().Alloc(0x1'0000'0000, 4 << 20).stack = s_.Stack({{"ncclCommInitRank"}});
  s_.script().Alloc(0x2'0000'0000, 4 << 20).stack = s_.Stack({{"my_buffers()"}});
  s_.script().Alloc(0x3'0000'0000, 4 << 20);
  s_.Block(0x3'0000'0000, 512, s_.Batch());
  EXPECT_EQ(Of(0x70000), Category::kWorkspaces);
  EXPECT_EQ(Of(0x1'0000'0000), Category::kCommunication);
  EXPECT_EQ(Of(0x2'0000'0000), Category::kUnknown);
  EXPECT_EQ(Of(0x3'0000'0000), Category::kCache);
}

TEST_F(CategoriesTest, PersistentMemoryWithoutEvidenceIsUnknown) {
  s_.Block(0x70000, 12345 * 512, s_.Stack({{"setup", "/src/train.py"}}));
  Loop();
  EXPECT_EQ(Of(0x70000), Category::kUnknown);
  EXPECT_EQ(ConfidenceOf(0x70000), Confidence::kLow);
}

TEST_F(CategoriesTest, BatchThatStaysForTheWholeRunIsAnInputUnlessGradientsLackAParameter) {
  s_.Block(0x70000, kBatchBytes, s_.Batch());
  s_.Block(0x80000, kWeightBytes, s_.Batch());  // a weight created without a module
  s_.with_ranges = true;
  for (int i = 0; i < 5; ++i) TrainingStep(i);
  EXPECT_EQ(Of(0x70000), Category::kInputs);
  EXPECT_EQ(Of(0x80000), Category::kParameters);
}

TEST_F(CategoriesTest, UsersRuleComesFirst) {
  rules_ =
      CategoryRules::Parse("kv_cache file=/src/model.py function=Net.forward\n", "mine").value();
  Loop();
  EXPECT_EQ(Of(kActivation, 2), Category::kKvCache);
}

TEST_F(CategoriesTest, CategoriesAddUpToTheDevice) {
  s_.script().Alloc(0, 1 << 20);
  Loop();
  Examine();
  for (Step step = 0; step <= trace_->last_step(); ++step) {
    uint64_t held = 0, uses = 0;
    for (const OwnBytes& own : OwnBytesAfter(*trace_, step)) held += own.bytes;
    for (const CategoryUse& use : CategoriesAt(*examination_, *categories_, 0, step)) {
      uses += use.bytes;
    }
    ASSERT_EQ(uses, held) << step;
  }
}

TEST_F(CategoriesTest, EmptyRecordingHasNoCategories) {
  Examine();
  EXPECT_TRUE(CategoriesAt(*examination_, *categories_, 0, 0).empty());
}

TEST_F(CategoriesTest, HugeSizesAreCompared) {
  s_.Block(kParameter, UINT64_MAX - 5, s_.Stack({{"f", "/src/a.py"}}));
  for (int i = 0; i < 5; ++i) {
    s_.Backward([&] { s_.Block(kGradient, UINT64_MAX, s_.InBackward("MmBackward0")); });
    s_.Optimizer([&] { s_.Free(kGradient); });
  }
  EXPECT_EQ(Of(kGradient, 1), Category::kGradients);
}

}  // namespace
}  // namespace gmt::analysis
