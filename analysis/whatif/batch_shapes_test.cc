#include "analysis/whatif/batch_shapes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

// Blocks of PyTorch with known shapes and categories.
class BatchShapesTest : public ::testing::Test {
 protected:
  RowId Hold(Category category, const std::string& shape, uint64_t bytes,
             const std::string& function = "forward") {
    const uint64_t address = next_ += 0x1000000;
    script_.Tensor(script_.Block(address, bytes, {function, "main"}),
                   category == Category::kInputs ? "int64" : "float32", shape);
    last_ = address;
    categories_.push_back(category);
    return static_cast<RowId>(categories_.size() - 1);
  }
  // Eight samples of 128 tokens, 64 features.
  void HoldLanguageModel() {
    Hold(Category::kInputs, "[8, 128]", 8192);
    Hold(Category::kActivations, "[8, 128, 64]", 262144);
    Hold(Category::kActivations, "[1024, 512]", 2097152);
    Hold(Category::kParameters, "[64, 192]", 49152);
  }
  const BatchShapes& Shapes() {
    if (shapes_ == nullptr) {
      trace_ = std::make_unique<Trace>(script_.Build());
      examination_ = std::make_unique<Examination>(*trace_, script_.definitions());
      std::vector<Categories::Assignment> assignments(categories_.size());
      for (size_t i = 0; i < categories_.size(); ++i) assignments[i].category = categories_[i];
      known_ = std::make_unique<Categories>(assignments, std::vector<std::string>{""});
      shapes_ = std::make_unique<BatchShapes>(*examination_, *known_, PhaseSpans(), 0);
    }
    return *shapes_;
  }

  EventScript script_;
  uint64_t next_ = 0, last_ = 0;
  std::vector<Category> categories_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
  std::unique_ptr<Categories> known_;
  std::unique_ptr<BatchShapes> shapes_;
};

TEST_F(BatchShapesTest, TensorsGrowWithEachDimensionThatCountsTheInputs) {
  HoldLanguageModel();
  const RowId features = Hold(Category::kActivations, "[8, 128, 64]", 262144, "norm");
  const RowId merged = Hold(Category::kActivations, "[1024, 64]", 262144, "linear");
  const RowId attention = Hold(Category::kActivations, "[8, 12, 128, 128]", 6291456, "softmax");
  const RowId heads = Hold(Category::kTemporaries, "[96, 128, 128]", 6291456, "bmm");
  ASSERT_TRUE(Shapes().batch());
  const InputChange samples{.samples = 2}, tokens{.tokens = 2}, both{.samples = 2, .tokens = 2};
  for (const RowId row : {features, merged}) {
    EXPECT_EQ(Shapes().FactorOf(row, samples), 2);
    EXPECT_EQ(Shapes().FactorOf(row, tokens), 2);
    EXPECT_EQ(Shapes().FactorOf(row, both), 4);
  }
  for (const RowId row : {attention, heads}) {
    EXPECT_EQ(Shapes().FactorOf(row, samples), 2);
    EXPECT_EQ(Shapes().FactorOf(row, tokens), 4);
    EXPECT_EQ(Shapes().FactorOf(row, both), 8);
  }
}

TEST_F(BatchShapesTest, TensorsWithoutTheInputsInTheirShapeStay) {
  HoldLanguageModel();
  const RowId weight = Hold(Category::kActivations, "[64, 192]", 24576, "cast");
  const RowId sum = Hold(Category::kTemporaries, "[64]", 512, "sum");
  EXPECT_EQ(Shapes().FactorOf(weight, {.samples = 2, .tokens = 2}), 1);
  EXPECT_EQ(Shapes().FactorOf(sum, {.samples = 2, .tokens = 2}), 1);
}

TEST_F(BatchShapesTest, FeaturesOfTheSameSizeAsTheSequenceStay) {
  HoldLanguageModel();
  Hold(Category::kParameters, "[128, 128]", 65536);
  Hold(Category::kParameters, "[512, 128]", 262144);
  const RowId features = Hold(Category::kActivations, "[8, 128, 128]", 524288, "norm");
  const RowId merged = Hold(Category::kActivations, "[1024, 128]", 524288, "linear");
  const RowId attention = Hold(Category::kActivations, "[8, 4, 128, 128]", 2097152, "softmax");
  EXPECT_EQ(Shapes().FactorOf(features, {.tokens = 2}), 2);
  EXPECT_EQ(Shapes().FactorOf(merged, {.tokens = 2}), 2);
  EXPECT_EQ(Shapes().FactorOf(attention, {.tokens = 2}), 4);
}

TEST_F(BatchShapesTest, LogitsOfAllTokensButTheLastCountTokens) {
  HoldLanguageModel();
  const RowId shifted = Hold(Category::kActivations, "[8, 127, 512]", 2080768, "shift");
  const RowId merged = Hold(Category::kActivations, "[1016, 512]", 2080768, "flatten");
  for (const RowId row : {shifted, merged}) {
    EXPECT_EQ(Shapes().FactorOf(row, {.samples = 2}), 2);
    EXPECT_EQ(Shapes().FactorOf(row, {.tokens = 2}), 2);
  }
}

TEST_F(BatchShapesTest, SequencesOfAnotherNumberOfSamplesGrowToo) {
  HoldLanguageModel();
  const RowId gathered = Hold(Category::kActivations, "[41, 128, 64]", 131072, "cat");
  const RowId kernels = Hold(Category::kActivations, "[41, 7, 7]", 16384, "cast");
  EXPECT_EQ(Shapes().FactorOf(gathered, {.samples = 2, .tokens = 2}), 4);
  EXPECT_EQ(Shapes().FactorOf(kernels, {.samples = 2, .tokens = 2}), 1);
}

TEST_F(BatchShapesTest, EvaluationHasItsOwnNumberOfSamples) {
  Hold(Category::kInputs, "[8, 3, 64, 64]", 393216);
  Hold(Category::kActivations, "[8, 16, 64, 64]", 2097152);
  Hold(Category::kInputs, "[21, 3, 64, 64]", 8192);
  const RowId evaluated = Hold(Category::kActivations, "[21, 16, 64, 64]", 8192, "evaluate");
  const RowId other = Hold(Category::kActivations, "[19, 16, 64, 64]", 8192, "cast");
  ASSERT_TRUE(Shapes().batch());
  EXPECT_EQ(Shapes().batch()->samples, 8u);
  EXPECT_EQ(Shapes().FactorOf(evaluated, {.samples = 2}), 2);
  EXPECT_EQ(Shapes().FactorOf(other, {.samples = 2}), 1);
}

TEST_F(BatchShapesTest, EvaluationThatMakesItsInputsHasItsOwnNumberOfSamples) {
  script_.Mark("step", 0);
  const RowId evaluated = Hold(Category::kTemporaries, "[21, 3, 96, 96]", 1048576, "evaluate");
  script_.FreeBlock(last_);
  Hold(Category::kTemporaries, "[21, 16, 48, 48]", 524288, "evaluate");
  script_.FreeBlock(last_);
  const RowId cast = Hold(Category::kTemporaries, "[19, 3, 3]", 512, "cast");
  script_.FreeBlock(last_);
  script_.Mark("step", 1);
  Hold(Category::kInputs, "[8, 3, 64, 64]", 393216);
  Hold(Category::kActivations, "[8, 16, 64, 64]", 2097152);
  script_.Mark("step", 2);
  ASSERT_TRUE(Shapes().batch());
  EXPECT_EQ(Shapes().batch()->samples, 8u);
  EXPECT_EQ(Shapes().FactorOf(evaluated, {.samples = 2}), 2);
  EXPECT_EQ(Shapes().FactorOf(cast, {.samples = 2}), 1);
}

TEST_F(BatchShapesTest, LengthsArePaddedToTheNextMultiple) {
  HoldLanguageModel();
  const RowId row = Hold(Category::kActivations, "[8, 128, 64]", 262144, "norm");
  EXPECT_EQ(Shapes().FactorOf(row, {.bucket = 96}), 1.5);
  EXPECT_EQ(Shapes().FactorOf(row, {.bucket = 128}), 1);
  EXPECT_EQ(Shapes().FactorOf(row, {.tokens = 1.25, .bucket = 256}), 2);
}

TEST_F(BatchShapesTest, OtherPassesGrowAsTheSamePlacesInThePassOfThePeak) {
  // The first step has 5 samples of 40 tokens, which no dimension of the second one has.
  script_.Mark("step", 0);
  const RowId shorter = Hold(Category::kActivations, "[5, 40, 64]", 51200);
  script_.FreeBlock(last_);
  script_.Mark("step", 1);
  HoldLanguageModel();
  script_.Mark("step", 2);
  ASSERT_TRUE(Shapes().batch());
  EXPECT_EQ(Shapes().batch()->samples, 8u);
  EXPECT_EQ(Shapes().FactorOf(shorter, {.samples = 2}), 2);
  EXPECT_EQ(Shapes().FactorOf(shorter, {.tokens = 3}), 3);
}

TEST_F(BatchShapesTest, InputsAreThoseOfAStepThatDidNotEndIfItHasThePeak) {
  for (uint64_t step = 0; step < 3; ++step) {
    script_.Mark("step", step);
    Hold(Category::kActivations, "[5, 40, 64]", 51200);
    script_.FreeBlock(last_);
  }
  script_.Mark("step", 3);
  const Step ended = static_cast<Step>(categories_.size() * 2);
  HoldLanguageModel();
  ASSERT_TRUE(Shapes().batch());
  EXPECT_EQ(Shapes().batch()->samples, 8u);
  EXPECT_FALSE(Shapes().IsInPass(ended));
  EXPECT_TRUE(Shapes().IsInPass(ended + 1));
}

TEST_F(BatchShapesTest, BatchIsUnknownWithoutShapes) {
  script_.Block(0x1000, 512);
  categories_.push_back(Category::kActivations);
  EXPECT_FALSE(Shapes().batch());
}

}  // namespace
}  // namespace gmt::analysis
