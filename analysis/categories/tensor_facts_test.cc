#include "analysis/categories/tensor_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

// Blocks of PyTorch with known types, shapes and categories, all held.
class TensorFactsTest : public ::testing::Test {
 protected:
  uint64_t Hold(Category category, const std::string& dtype, const std::string& shape,
                uint64_t bytes, const std::string& function = "forward") {
    const uint64_t address = next_ += 0x100000;
    script_.Tensor(script_.Block(address, bytes, {function, "main"}), dtype, shape);
    categories_.push_back(category);
    return address;
  }
  std::optional<TensorFacts> Find() {
    trace_ = std::make_unique<Trace>(script_.Build());
    examination_ = std::make_unique<Examination>(*trace_, script_.definitions());
    std::vector<Categories::Assignment> assignments(categories_.size());
    for (size_t i = 0; i < categories_.size(); ++i) assignments[i].category = categories_[i];
    return FindTensorFacts(*examination_, Categories(assignments, {""}), 0, trace_->last_step());
  }

  EventScript script_;
  uint64_t next_ = 0;
  std::vector<Category> categories_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
};

TEST_F(TensorFactsTest, NothingIsKnownWithoutTypesAndShapes) {
  script_.Block(0x1000, 512);
  categories_.push_back(Category::kActivations);
  EXPECT_FALSE(Find().has_value());
}

TEST_F(TensorFactsTest, BytesPerSampleAndTokenCountTensorsWithTheBatchInTheirShape) {
  Hold(Category::kInputs, "int64", "[8, 128]", 8192);
  Hold(Category::kActivations, "float32", "[8, 128, 64]", 262144);
  Hold(Category::kActivations, "float32", "[1024, 512]", 2097152);  // samples and tokens merged
  Hold(Category::kActivations, "bfloat16", "[64, 192]", 24576);     // a cast weight
  Hold(Category::kParameters, "float32", "[64, 192]", 49152);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 8u);
  EXPECT_EQ(facts->batch->tokens, 128u);
  EXPECT_EQ(facts->batch->batch_bytes, 262144u + 2097152u);
  EXPECT_EQ(facts->batch->bytes_per_sample(), (262144u + 2097152u) / 8);
  EXPECT_EQ(facts->batch->bytes_per_token(), (262144u + 2097152u) / 1024);
  EXPECT_EQ(facts->batch->square_bytes, 0u);
}

TEST_F(TensorFactsTest, ModelMayReceiveAllTokensButTheLast) {
  Hold(Category::kInputs, "int64", "[8, 129]", 8256);
  Hold(Category::kActivations, "float32", "[8, 128, 64]", 262144);
  Hold(Category::kActivations, "float32", "[1024, 512]", 2097152);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->tokens, 128u);
  EXPECT_EQ(facts->batch->batch_bytes, 262144u + 2097152u);
}

TEST_F(TensorFactsTest, LogitsOfAllTokensButTheLastBelongToTheSequence) {
  Hold(Category::kInputs, "int64", "[8, 128]", 8192);
  Hold(Category::kActivations, "float32", "[8, 128, 64]", 262144);
  Hold(Category::kActivations, "float32", "[1024, 64]", 262144);
  Hold(Category::kActivations, "float32", "[8, 127, 512]", 2080768);
  Hold(Category::kActivations, "float32", "[1016, 512]", 2080768);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->tokens, 128u);
}

TEST_F(TensorFactsTest, AttentionIsSquareInTheSequenceAlsoWithHeadsAndSamplesMerged) {
  Hold(Category::kInputs, "int64", "[8, 128]", 8192);
  Hold(Category::kActivations, "float32", "[8, 4, 128, 128]", 2097152, "softmax");
  Hold(Category::kTemporaries, "float32", "[32, 128, 128]", 2097152, "bmm");
  Hold(Category::kActivations, "float32", "[8, 4, 128, 16]", 262144);
  Hold(Category::kParameters, "float32", "[128, 64]", 32768);  // a position table
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->square_bytes, 2u * 2097152);
  EXPECT_EQ(facts->batch->batch_bytes, 2u * 2097152 + 262144);
  EXPECT_TRUE(facts->batch->certain);
  ASSERT_EQ(facts->batch->square.size(), 2u);
}

TEST_F(TensorFactsTest, SquareIsNotCertainIfTheModelIsAsWideAsTheSequenceIsLong) {
  Hold(Category::kInputs, "int64", "[8, 128]", 8192);
  Hold(Category::kActivations, "float32", "[8, 128, 128]", 524288);
  Hold(Category::kParameters, "float32", "[128, 128]", 65536);
  Hold(Category::kParameters, "float32", "[512, 128]", 262144);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->square_bytes, 524288u);
  EXPECT_FALSE(facts->batch->certain);
}

TEST_F(TensorFactsTest, ImagesHaveSamplesAndNoTokens) {
  Hold(Category::kInputs, "float32", "[16, 3, 32, 32]", 196608);
  Hold(Category::kActivations, "float32", "[16, 64, 32, 32]", 4194304);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 16u);
  EXPECT_EQ(facts->batch->tokens, 0u);
  EXPECT_EQ(facts->batch->bytes_per_token(), 0u);
}

TEST_F(TensorFactsTest, LabelsOfSeveralClassesAreNoTokens) {
  Hold(Category::kInputs, "float32", "[16, 3, 32, 32]", 196608);
  Hold(Category::kInputs, "int64", "[16, 10]", 1536);
  Hold(Category::kActivations, "float32", "[16, 64, 32, 32]", 4194304);
  Hold(Category::kActivations, "float32", "[16, 10]", 1024);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 16u);
  EXPECT_EQ(facts->batch->tokens, 0u);
}

TEST_F(TensorFactsTest, FeaturesInTheSecondDimensionAreNoTokens) {
  Hold(Category::kInputs, "float32", "[16, 64, 700]", 2867200);
  Hold(Category::kActivations, "float32", "[16, 64, 700]", 2867200, "convolution");
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 16u);
  EXPECT_EQ(facts->batch->tokens, 0u);
}

TEST_F(TensorFactsTest, FramesThatALayerMergesWithSamplesAreTokens) {
  Hold(Category::kInputs, "float32", "[16, 90, 80]", 460800);
  Hold(Category::kActivations, "float32", "[16, 90, 256]", 1474560);
  Hold(Category::kActivations, "float32", "[1440, 256]", 1474560);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->tokens, 90u);
}

TEST_F(TensorFactsTest, PatchesOfImagesMayBeMergedWithSamples) {
  Hold(Category::kInputs, "float32", "[12, 3, 64, 64]", 589824);
  Hold(Category::kActivations, "float32", "[12, 64, 192]", 589824);
  Hold(Category::kActivations, "float32", "[768, 576]", 1769472);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 12u);
  EXPECT_EQ(facts->batch->batch_bytes, 589824u + 1769472u);
}

TEST_F(TensorFactsTest, NextBatchOfAnotherLengthIsNotTheBatchOfThePass) {
  Hold(Category::kInputs, "int64", "[8, 100]", 6656);
  Hold(Category::kInputs, "int64", "[8, 140]", 9216);
  Hold(Category::kActivations, "float32", "[8, 100, 64]", 204800);
  Hold(Category::kActivations, "float32", "[800, 192]", 614400);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->tokens, 100u);
  EXPECT_EQ(facts->batch->batch_bytes, 204800u + 614400u);
}

TEST_F(TensorFactsTest, SmallerBatchIsNotADivisorOfTheNext) {
  Hold(Category::kInputs, "int64", "[4, 100]", 3584);
  Hold(Category::kInputs, "int64", "[8, 100]", 6656);
  Hold(Category::kActivations, "float32", "[8, 100, 64]", 204800);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->batch);
  EXPECT_EQ(facts->batch->samples, 8u);
}

TEST_F(TensorFactsTest, BatchOfPackedSequencesIsNotKnown) {
  const uint64_t ids = Hold(Category::kInputs, "int64", "[600]", 5120);
  script_.Role(ids, format::kRoleSaved, "EmbeddingBackward0");
  Hold(Category::kInputs, "int32", "[5]", 512);
  Hold(Category::kActivations, "float32", "[600, 192]", 460800);
  const auto facts = Find();
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->batch);
}

TEST_F(TensorFactsTest, BatchIsNotKnownIfItExplainsTooLittle) {
  Hold(Category::kInputs, "int64", "[8, 128]", 8192);
  Hold(Category::kActivations, "float32", "[8, 128, 64]", 262144);
  Hold(Category::kActivations, "float32", "[301, 64]", 77312);  // tokens that an expert received
  const auto facts = Find();
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->batch);
}

TEST_F(TensorFactsTest, BatchIsNotKnownIfItsTensorsMayBeCopiesOfWeights) {
  Hold(Category::kInputs, "float32", "[512, 512]", 1048576);
  Hold(Category::kParameters, "float32", "[512, 512]", 1048576);
  Hold(Category::kActivations, "float32", "[512, 512]", 1048576);
  const auto facts = Find();
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->batch);
}

TEST_F(TensorFactsTest, MasterWeightsAreAThirdFloatCopyInAdditionToAdamsStates) {
  Hold(Category::kParameters, "bfloat16", "[64, 64]", 8192);
  for (int i = 0; i < 3; ++i) Hold(Category::kOptimizerState, "float32", "[64, 64]", 16384);
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->master);
  EXPECT_EQ(facts->master->parameter_bytes, 8192u);
  EXPECT_EQ(facts->master->master_bytes, 16384u);
}

TEST_F(TensorFactsTest, BothStatesOfAdamInFloatAreNotMasterWeights) {
  Hold(Category::kParameters, "bfloat16", "[64, 64]", 8192);
  for (int i = 0; i < 2; ++i) Hold(Category::kOptimizerState, "float32", "[64, 64]", 16384);
  const auto facts = Find();
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->master);
}

TEST_F(TensorFactsTest, ActivationsOfBothTypesAreNamedByTheNodeThatSavesThem) {
  Hold(Category::kActivations, "bfloat16", "[8, 128, 64]", 131072);
  const uint64_t norm = Hold(Category::kActivations, "float32", "[8, 128, 64]", 262144);
  script_.Role(norm, format::kRoleSaved, "NativeLayerNormBackward0");
  const auto facts = Find();
  ASSERT_TRUE(facts && facts->mixed);
  EXPECT_EQ(facts->mixed->half_dtype, "bfloat16");
  EXPECT_EQ(facts->mixed->half_bytes, 131072u);
  EXPECT_EQ(facts->mixed->float_bytes, 262144u);
  EXPECT_EQ(facts->mixed->largest.front().node, "NativeLayerNormBackward0");
}

TEST_F(TensorFactsTest, ALittleFloatBesideHalfPrecisionIsNotReported) {
  Hold(Category::kActivations, "bfloat16", "[8, 128, 64]", 1310720);
  Hold(Category::kActivations, "float32", "[8]", 512);
  const auto facts = Find();
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->mixed);
}

}  // namespace
}  // namespace gmt::analysis
