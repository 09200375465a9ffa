#include <cstdint>

#include "analysis/categories/categories.h"
#include "analysis/testing/training_script.h"
#include "analysis/whatif/changes.h"
#include "format/units.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kBlocks = 4, kGpus = 2;
constexpr uint64_t kLayer = 8 * kMiB, kHead = 2 * kMiB, kOutput = 4 * kMiB;

// Trains four blocks with a parameter each, and a head that is in no block.
class ShardingTest : public ::testing::Test {
 protected:
  // The peak with the model divided among two GPUs. `loss`: bytes of a temporary at the beginning
  // of the backward pass.
  uint64_t ShardedPeak(uint64_t loss) {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      script_.Block(At(10 + block), kLayer, script_.Parameter());
    }
    script_.Block(At(20), kHead, script_.Parameter());
    for (int step = 0; step < 3; ++step) Step(loss);
    const Trace trace = script_.script().Build();
    const Examination examination(trace, script_.script().definitions());
    const Categories categories = Categorize(examination);
    ProgramChange change(trace, 0);
    EXPECT_TRUE(Changes(examination, categories, 0).Shard(kGpus, change).ok());
    return change.FindPeak().bytes;
  }

 private:
  static uint64_t At(uint64_t number) { return number << 32; }
  uint32_t InBlock(const char* op) {
    return script_.Stack({{op},
                          {"Block.forward", "/src/model.py"},
                          {"Module._call_impl", TrainingScript::Torch("nn/modules/module.py")},
                          {"Net.forward", "/src/model.py"},
                          {"Module._call_impl", TrainingScript::Torch("nn/modules/module.py")},
                          {"main", "/src/train.py"}});
  }
  void Step(uint64_t loss) {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      script_.Block(At(30 + block), kOutput, InBlock("at::native::layer_norm"));
      script_.Block(At(40 + block), kOutput, InBlock("at::native::add"));
    }
    script_.Backward([&] {
      script_.Block(At(50), loss, script_.InBackward("LogSoftmaxBackward0"));
      script_.Free(At(50));
      for (uint64_t block = kBlocks; block-- > 0;) {
        script_.Free(At(40 + block));
        script_.Free(At(30 + block));
        script_.Block(At(60 + block), kLayer, script_.InBackward("MmBackward0"));
      }
      script_.Block(At(70), kHead, script_.InBackward("MmBackward0"));
    });
    script_.Optimizer([&] {
      script_.Block(At(80), kBlocks * kLayer, script_.InOptimizer("Adam.step", "at::_foreach"));
      script_.Free(At(80));
    });
    for (uint64_t block = 0; block < kBlocks; ++block) script_.Free(At(60 + block));
    script_.Free(At(70));
  }

  TrainingScript script_;
};

TEST_F(ShardingTest, NoLayerIsGatheredWhileTheLossIsComputed) {
  constexpr uint64_t kLoss = 200 * kMiB;
  EXPECT_EQ(ShardedPeak(kLoss),
            (kBlocks * kLayer + kHead) / kGpus + kHead + 2 * kBlocks * kOutput + kLoss);
}

TEST_F(ShardingTest, BackwardPassHasThreeGatheredLayersAndTheGradientsOfOne) {
  // The peak is when the first gradients exist: parts of all parameters and of the gradients so
  // far, the head, the outputs of the other blocks, and four layers.
  EXPECT_EQ(ShardedPeak(kMiB),
            (kBlocks * kLayer + kHead) / kGpus + kHead + 4 * kLayer + (2 * kBlocks - 1) * kOutput);
}

}  // namespace
}  // namespace gmt::analysis
