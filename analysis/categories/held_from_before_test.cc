#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/testing/training_script.h"
#include "format/event.h"
#include "format/live_columns.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kForwardBlock = 0x30000, kBackwardBlock = 0x40000, kOptimizerBlock = 0x50000;
constexpr uint64_t kCublasWorkspace = 8'519'680;
constexpr uint64_t kLayerBytes = 4096, kEmbeddingBytes = 40960, kForwardBytes = 6144;

// Recordings that begin after the model and its data were created, as most snapshots do.
class HeldFromBeforeTest : public ::testing::Test {
 protected:
  void HeldBefore(uint64_t address, uint64_t size) {
    s_.script().Api(s_.script().Block(address, size), kBeforeAttachApi);
  }
  // The stack is known from the state at the end, as in snapshots of PyTorch.
  void HeldWithStack(uint64_t address, uint64_t size, uint32_t stack) {
    format::Event event = s_.script().Block(address, size);
    s_.script().events().pop_back();
    event.stack = stack;
    Snapshot end;
    end.set_name("exit");
    end.set_t_ns(INT64_MAX);
    *end.mutable_live() = format::EncodeLive({event});
    at_end_.push_back(std::move(end));
  }
  // Holds four layers with blocks of 30, 60 and 90 units of the allocator.
  static constexpr uint64_t kLayersAt = 0x100000, kLayersBytes = 4 * (30 + 60 + 90) * 512;
  void HoldLayers() {
    for (uint64_t i = 0; i < 12; ++i) HeldBefore(kLayersAt + i * 0x10000, (1 + i % 3) * 30 * 512);
  }
  // Runs a step whose backward pass adds a gradient of each size to one that exists.
  void AddingStep(std::initializer_list<uint64_t> sizes) {
    s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
    s_.Backward([&] {
      for (const uint64_t size : sizes) {
        s_.Block(kBackwardBlock, size, s_.InBackward("MmBackward0"));
        s_.Free(kBackwardBlock);
      }
      s_.Free(kForwardBlock);
    });
  }
  // Runs a step whose backward pass leaves a gradient, which the next step would free.
  void TrainingStep(uint64_t size) {
    s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kBackwardBlock, size, s_.InBackward("MmBackward0"));
      s_.Free(kForwardBlock);
    });
    s_.Optimizer([&] { s_.Block(kOptimizerBlock, 512, s_.State()), s_.Free(kOptimizerBlock); });
    s_.Free(kBackwardBlock);
  }
  // Returns the bytes of a category among memory from before. Call after all events were added.
  uint64_t BytesOf(Category category) {
    Examine();
    uint64_t bytes = 0;
    for (RowId row = 0; row < trace_->rows.count(); ++row) {
      if (trace_->rows.birth[row] == 0 && categories_->Of(row).category == category)
        bytes += trace_->rows.size[row];
    }
    return bytes;
  }
  std::string ReasonOf(uint64_t address) {
    Examine();
    for (RowId row = 0; row < trace_->rows.count(); ++row) {
      if (trace_->rows.address[row] == address) return std::string(categories_->Reason(row));
    }
    return "";
  }

  TrainingScript s_;

 private:
  void Examine() {
    if (categories_) return;
    trace_.emplace(s_.script().Build(at_end_));
    examination_.emplace(*trace_, s_.script().definitions());
    categories_.emplace(Categorize(*examination_));
  }

  std::vector<Snapshot> at_end_;
  std::optional<Trace> trace_;
  std::optional<Examination> examination_;
  std::optional<Categories> categories_;
};

TEST_F(HeldFromBeforeTest, GradientsThatABackwardPassOnlyAddsToAreAsManyAsParameters) {
  for (uint64_t at = 0x1000; at < 0x5000; at += 0x1000) HeldBefore(at, kLayerBytes);
  for (uint64_t at : {0x10000u, 0x20000u}) HeldBefore(at, kEmbeddingBytes);
  AddingStep({kLayerBytes, kLayerBytes, kEmbeddingBytes});
  EXPECT_EQ(BytesOf(Category::kParameters), 2 * kLayerBytes + kEmbeddingBytes);
  EXPECT_EQ(BytesOf(Category::kGradients), 2 * kLayerBytes + kEmbeddingBytes);
}

TEST_F(HeldFromBeforeTest, OptimizerStateBesideAddedGradientsIsWhatRemains) {
  for (uint64_t at = 0x1000; at < 0x9000; at += 0x1000) HeldBefore(at, kLayerBytes);
  AddingStep({kLayerBytes, kLayerBytes});
  EXPECT_EQ(BytesOf(Category::kParameters), 2 * kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kGradients), 2 * kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kOptimizerState), 4 * kLayerBytes);
}

TEST_F(HeldFromBeforeTest, OneTemporaryOfABlocksSizeMakesItNeitherParameterNorGradient) {
  HeldBefore(0x1000, kLayerBytes);  // for instance the batch
  AddingStep({kLayerBytes});
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
  EXPECT_EQ(BytesOf(Category::kGradients), 0u);
}

TEST_F(HeldFromBeforeTest, BlocksInSizesOfLayersWithoutGradientsAreFrozenWeights) {
  HoldLayers();
  HeldBefore(0x10000, 300 * 512);  // the embedding
  for (int i = 0; i < 4; ++i) TrainingStep(kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kParameters), kLayersBytes + 300 * 512);
  EXPECT_THAT(ReasonOf(kLayersAt), HasSubstr("frozen weights"));
}

TEST_F(HeldFromBeforeTest, FewLargeBlocksOfDataAreNoFrozenWeights) {
  HoldLayers();
  HeldBefore(0x1000000, 3000 * 512);
  for (int i = 0; i < 4; ++i) TrainingStep(kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
}

TEST_F(HeldFromBeforeTest, ManyBlocksOfOneSizeAreNoFrozenWeights) {
  for (uint64_t i = 0; i < 8; ++i) HeldBefore(kLayersAt + i * 0x10000, 30 * 512);
  for (int i = 0; i < 4; ++i) TrainingStep(kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
}

TEST_F(HeldFromBeforeTest, BlocksOfASizeThatEachStepKeepsAreNoFrozenWeights) {
  constexpr uint64_t kLeaked = 30 * 512;
  HoldLayers();
  for (uint64_t i = 0; i < 4; ++i) {
    TrainingStep(kLayerBytes);
    s_.Block(0x2000000 + i * 0x10000, kLeaked, s_.InForward());
  }
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
}

TEST_F(HeldFromBeforeTest, BlocksOfAQuarterOfAGradientMayBeStateAndStayUnknown) {
  for (uint64_t i = 0; i < 8; ++i) HeldBefore(0x100000 + i * 0x10000, kLayerBytes / 4);
  for (int i = 0; i < 4; ++i) TrainingStep(kLayerBytes);
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
  EXPECT_EQ(BytesOf(Category::kUnknown), 8 * kLayerBytes / 4);
}

TEST_F(HeldFromBeforeTest, BlockOfAWorkspacesSizeIsOneAlthoughAGradientHasAlmostThatSize) {
  HeldBefore(0x1000000, kCublasWorkspace);
  for (int i = 0; i < 4; ++i) TrainingStep(kCublasWorkspace - 512);
  EXPECT_EQ(BytesOf(Category::kWorkspaces), kCublasWorkspace);
}

TEST_F(HeldFromBeforeTest, WhatABackwardPassLeftBeforeAForwardPassIsAGradient) {
  HeldWithStack(0x1000, kLayerBytes, s_.InBackward("MmBackward0"));
  s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
  EXPECT_EQ(BytesOf(Category::kGradients), kLayerBytes);
}

TEST_F(HeldFromBeforeTest, FourBlocksOfEachSizeAreTheStateOfTraining) {
  for (uint64_t i = 0; i < 32; ++i) HeldBefore(0x100000 + i * 0x10000, kLayerBytes);
  for (uint64_t i = 0; i < 4; ++i) HeldBefore(0x1000000 + i * 0x10000, kEmbeddingBytes);
  s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
  constexpr uint64_t kModel = 8 * kLayerBytes + kEmbeddingBytes;
  EXPECT_EQ(BytesOf(Category::kParameters), kModel);
  EXPECT_EQ(BytesOf(Category::kGradients), kModel);
  EXPECT_EQ(BytesOf(Category::kOptimizerState), 2 * kModel);
}

TEST_F(HeldFromBeforeTest, LayersInFoursBesideOneEmbeddingAreAModelAlone) {
  for (uint64_t i = 0; i < 32; ++i) HeldBefore(0x100000 + i * 0x10000, kLayerBytes);
  HeldBefore(0x1000000, kEmbeddingBytes);
  s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
  EXPECT_EQ(BytesOf(Category::kParameters), 32 * kLayerBytes + kEmbeddingBytes);
}

TEST_F(HeldFromBeforeTest, WhatAPassReplacesAtItsEndIsNoParameter) {
  HoldLayers();
  for (uint64_t i = 0; i < 4; ++i) HeldBefore(0x2000000 + i * 0x10000, kForwardBytes);
  HeldBefore(0x3000000, 7 * kForwardBytes);
  for (uint64_t i = 0; i < 4; ++i) s_.Block(0x4000000 + i * 0x10000, kForwardBytes, s_.InForward());
  for (uint64_t i = 0; i < 4; ++i) s_.Free(0x2000000 + i * 0x10000);
  s_.Free(0x3000000);
  EXPECT_EQ(BytesOf(Category::kParameters), kLayersBytes);
  EXPECT_EQ(BytesOf(Category::kActivations), 4 * kForwardBytes);
  EXPECT_EQ(BytesOf(Category::kUnknown), 7 * kForwardBytes);
}

TEST_F(HeldFromBeforeTest, ParametersStayThoseOfAProgramThatFreesAllAtItsEnd) {
  HoldLayers();
  s_.Block(0x4000000, kForwardBytes, s_.InForward());
  for (uint64_t i = 0; i < 12; ++i) s_.Free(kLayersAt + i * 0x10000);
  EXPECT_EQ(BytesOf(Category::kParameters), kLayersBytes);
}

TEST_F(HeldFromBeforeTest, WhatIsHeldBesideParametersThatTheProgramBringsIsUnknown) {
  HeldBefore(0x1000, kForwardBytes);
  for (int layer = 0; layer < 3; ++layer) {
    s_.Block(0x2000000, kLayersBytes, s_.Parameter());
    s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
    s_.Free(kForwardBlock);
    s_.Free(0x2000000);
  }
  EXPECT_EQ(BytesOf(Category::kParameters), 0u);
  EXPECT_EQ(BytesOf(Category::kUnknown), kForwardBytes);
}

TEST_F(HeldFromBeforeTest, OwnClassesOfKvCachesAreKnownByTheirFiles) {
  const uint32_t update =
      s_.Stack({{"SketchCache.update", "/src/models/my_cache_utils.py"},
                {"Attention.forward", "/src/models/attention.py"},
                {"Module._call_impl", TrainingScript::Torch("nn/modules/module.py")}});
  HeldWithStack(0x1000, kLayerBytes, update);
  s_.Block(kForwardBlock, kForwardBytes, s_.InForward());
  EXPECT_EQ(BytesOf(Category::kKvCache), kLayerBytes);
}

}  // namespace
}  // namespace gmt::analysis
