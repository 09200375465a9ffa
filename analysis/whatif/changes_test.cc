#include "analysis/whatif/changes.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "analysis/testing/training_loop.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

class ChangesTest : public ::testing::Test {
 protected:
  // The peak after a change; -1, and why_, if it does not apply.
  int64_t PeakWith(const std::function<absl::Status(const Changes&, ProgramChange&)>& change,
                   uint64_t steps = 4) {
    loop_.Train(steps);
    const Trace trace = loop_.script.script().Build();
    const Examination examination(trace, loop_.script.script().definitions());
    const Categories categories = Categorize(examination);
    ProgramChange changed(trace, 0);
    EXPECT_EQ(changed.FindPeak().bytes,
              TrainingLoop::kPeak - (loop_.zero_grad_after_step ? 8 * kMiB : 0));
    const absl::Status status = change(Changes(examination, categories, 0), changed);
    why_ = std::string(status.message());
    return status.ok() ? static_cast<int64_t>(changed.FindPeak().bytes / kMiB) : -1;
  }

  TrainingLoop loop_;
  std::string why_;
};

TEST_F(ChangesTest, GradientsThatLiveThroughTheForwardPassEndWithTheOptimizer) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.SetGradientsToNone(change);
            }),
            65);
}

TEST_F(ChangesTest, GradientsThatEndWithTheOptimizerDoNotChange) {
  loop_.zero_grad_after_step = true;
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.SetGradientsToNone(change);
            }),
            -1);
  EXPECT_THAT(why_, HasSubstr("already"));
}

TEST_F(ChangesTest, EightBitStateIsAQuarter) {
  EXPECT_EQ(EightBitBytes(8 * kMiB), 2 * kMiB + 32 * kKiB);
  EXPECT_EQ(EightBitBytes(4 * kKiB), 4 * kKiB);
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.UseEightBitState(change);
            }),
            61);
}

TEST_F(ChangesTest, TemporariesOfTheOptimizerAreNotAtThePeak) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.FuseOptimizer(true, change);
            }),
            73);
}

TEST_F(ChangesTest, ForeachHasATemporaryForEachParameter) {
  // The recorded step has as much: 8 MiB, of the only parameter.
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.UseForeach(change);
            }),
            -1);
  EXPECT_THAT(why_, HasSubstr("already"));
}

TEST_F(ChangesTest, ForeachNeedsMoreThanTheStepOfOneParameterAtATime) {
  loop_.temporary_mib = 4;
  PeakWith([](const Changes& changes, ProgramChange& change) {
    const absl::Status status = changes.UseForeach(change);
    EXPECT_EQ(change.added().size(), 4u);  // one for each step
    for (const Holding& added : change.added()) EXPECT_EQ(added.bytes, 8 * kMiB);
    return status;
  });
  EXPECT_EQ(why_, "");
}

TEST_F(ChangesTest, HalfTheBatchHalvesActivationsAndInputs) {
  // The old gradients end when the first micro-batch has been computed.
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.HalveBatch(change);
            }),
            52);
}

TEST_F(ChangesTest, HalfTheBatchKeepsGradientsThroughTheSecondMicroBatch) {
  loop_.zero_grad_after_step = true;  // 65 at the peak, and no gradients
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.HalveBatch(change);
            }),
            52);
}

TEST_F(ChangesTest, InputsWithoutShapesGrowInProportion) {
  // Activations 40 and the batch 1, beside 32 that stay.
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.ScaleInputs({.samples = 3}, change);
            }),
            32 + 3 * 41);
}

TEST_F(ChangesTest, LongerSequencesNeedShapes) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.ScaleInputs({.tokens = 2}, change);
            }),
            -1);
  EXPECT_THAT(why_, HasSubstr("shapes of the tensors are not recorded"));
}

TEST_F(ChangesTest, ShardedModelWithoutLayersIsGatheredAsAWhole) {
  // When the backward pass begins, 8 + 16 of 65 are halved; the only parameter is gathered, and
  // its gradient is whole.
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.Shard(2, change);
            }),
            65 - 12 + 8 + 8);
}

TEST_F(ChangesTest, OffloadedStateIsNotOnTheDevice) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.OffloadState(change);
            }),
            57);
}

TEST_F(ChangesTest, ChangesOfTheSameBytesDoNotAddUp) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              EXPECT_TRUE(changes.UseEightBitState(change).ok());
              return changes.OffloadState(change);
            }),
            57);
}

TEST_F(ChangesTest, ModelWithoutRepeatedLayersHasNothingToCheckpoint) {
  EXPECT_EQ(PeakWith([](const Changes& changes, ProgramChange& change) {
              return changes.Checkpoint("", change).status();
            }),
            -1);
  EXPECT_THAT(why_, HasSubstr("no layers"));
}

// Three blocks of 12 MiB, each with an output of 4; the stacks do not show which is which.
TEST(CheckpointTest, LayersKeepTheirOutputsAndOneIsRecomputed) {
  TrainingScript script;
  const auto in_block = [&](const std::string& op) {
    return script.Stack({{op},
                         {"Block.forward", "/src/model.py"},
                         {"Module._call_impl", TrainingScript::Torch("nn/modules/module.py")},
                         {"Net.forward", "/src/model.py"},
                         {"Module._call_impl", TrainingScript::Torch("nn/modules/module.py")},
                         {"main", "/src/train.py"}});
  };
  const uint32_t norm = in_block("at::native::layer_norm(at::Tensor const&)");
  const uint32_t add = in_block("at::native::add(at::Tensor const&)");
  script.Block(uint64_t{1} << 32, 8 * kMiB, script.Parameter());
  for (int step = 0; step < 3; ++step) {
    for (uint64_t block = 0; block < 3; ++block) {
      script.Block((10 + 2 * block) << 32, 12 * kMiB, norm);
      script.Block((11 + 2 * block) << 32, 4 * kMiB, add);
    }
    script.Backward([&] {
      for (uint64_t block = 3; block-- > 0;) {
        script.Free((11 + 2 * block) << 32);
        script.Free((10 + 2 * block) << 32);
      }
      script.Block(uint64_t{2} << 32, 8 * kMiB, script.InBackward("AddmmBackward0"));
    });
    script.Optimizer([&] { script.Free(uint64_t{2} << 32); });
  }
  const Trace trace = script.script().Build();
  const Examination examination(trace, script.script().definitions());
  const Categories categories = Categorize(examination);
  ProgramChange change(trace, 0);
  EXPECT_EQ(change.FindPeak().bytes, 56 * kMiB);
  const auto layers = Changes(examination, categories, 0).Checkpoint("Block", change);
  ASSERT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(layers->count, 3u);
  EXPECT_EQ(layers->bytes, 36 * kMiB);
  EXPECT_EQ(layers->caller, "Net.forward (model.py:10)");
  EXPECT_EQ(change.FindPeak().bytes, 32 * kMiB);  // 8, three outputs, and 12 of one block
  EXPECT_FALSE(Changes(examination, categories, 0).Checkpoint("Attention", change).ok());
}

// Logits of 16 MiB, their logarithm of softmax, which both nodes save, and two gradients.
TEST(HalfPrecisionTest, CrossEntropyKeepsAHalfAndACopyInFloat32UntilTheLossIsDone) {
  TrainingScript script;
  const auto tensor = [&](uint64_t place, uint64_t mib, uint32_t stack) {
    script.script().Tensor(script.Block(place << 32, mib * kMiB, stack), "float32",
                           absl::StrCat("[1024, ", mib * 256, "]"));
  };
  tensor(1, 8, script.Parameter());
  script.script().Role(uint64_t{1} << 32, format::kRoleParameter);
  for (int step = 0; step < 3; ++step) {
    tensor(2, 16, script.InForward("at::native::addmm"));
    tensor(3, 16, script.InForward("at::native::log_softmax"));
    for (const char* node : {"LogSoftmaxBackward0", "NllLossBackward0"})
      script.script().Role(uint64_t{3} << 32, format::kRoleSaved, node);
    script.Backward([&] {
      tensor(4, 16, script.InBackward("NllLossBackward0"));
      tensor(5, 16, script.InBackward("LogSoftmaxBackward0"));
      script.Free(uint64_t{4} << 32);
      script.Free(uint64_t{3} << 32);
      tensor(6, 8, script.InBackward("AddmmBackward0"));
      script.Free(uint64_t{5} << 32);
      script.Free(uint64_t{2} << 32);
    });
    script.Optimizer([&] { script.Free(uint64_t{6} << 32); });
  }
  const Trace trace = script.script().Build();
  const Examination examination(trace, script.script().definitions());
  const Categories categories = Categorize(examination);
  ProgramChange change(trace, 0);
  EXPECT_EQ(change.FindPeak().bytes, 72 * kMiB);
  const absl::Status status = Changes(examination, categories, 0).UseHalfPrecision(change);
  ASSERT_TRUE(status.ok()) << status;
  // Weights of 8 and a copy of 4, logits of 8, the logarithm of 8, its copy of 16, and the first
  // gradient of 16. When the second one of 8 begins, the copy has ended.
  EXPECT_EQ(change.FindPeak().bytes, 60 * kMiB);
}

// Python before 3.11 does not record classes.
TEST(LayersTest, NameIsTheLastPartOfThePath) {
  Layers layers;
  layers.path = "GPT > Block";
  EXPECT_EQ(layers.name(), "Block");
  layers.path = "forward (gpt.py:61) > forward (gpt.py:45)";
  EXPECT_EQ(layers.name(), "forward (gpt.py:45)");
  layers.path = "forward (gpt.py:61)";
  EXPECT_EQ(layers.name(), "forward (gpt.py:61)");
}

}  // namespace
}  // namespace gmt::analysis
