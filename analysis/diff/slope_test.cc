#include "analysis/diff/slope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/event.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A recording of blocks with known categories.
class BlocksOfARun {
 public:
  void Hold(Category category, const std::string& shape, uint64_t bytes, const char* function) {
    const uint64_t address = next_ += 0x10000000;
    format::Event& event = script_.Block(address, bytes, {function, "main"});
    if (!shape.empty())
      script_.Tensor(event, category == Category::kInputs ? "int64" : "float32", shape);
    categories_.push_back(category);
  }
  // Memory of a model of `samples` x `tokens`.
  void HoldModel(uint64_t samples, uint64_t tokens) {
    const uint64_t all = samples * tokens;
    const std::string batch = "[" + std::to_string(samples) + ", " + std::to_string(tokens);
    Hold(Category::kParameters, "[700, 700]", 2 * kMiB, "build");
    Hold(Category::kInputs, batch + "]", all * 8, "load");
    Hold(Category::kActivations, batch + ", 64]", all * 4096, "linear");
    Hold(Category::kActivations, batch + ", " + std::to_string(tokens) + "]", all * tokens * 8,
         "scores");
  }
  const Examination& examination() {
    trace_ = std::make_unique<Trace>(script_.Build());
    examination_ = std::make_unique<Examination>(*trace_, script_.definitions());
    return *examination_;
  }
  Categories categories() const {
    std::vector<Categories::Assignment> assignments(categories_.size());
    for (size_t i = 0; i < categories_.size(); ++i) assignments[i].category = categories_[i];
    return Categories(assignments, {""});
  }

 private:
  EventScript script_;
  uint64_t next_ = 0;
  std::vector<Category> categories_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
};

absl::StatusOr<Slopes> TryToFind(BlocksOfARun& first, BlocksOfARun& second) {
  return FindSlopes(first.examination(), first.categories(), second.examination(),
                    second.categories(), {});
}

Slope FindOne(BlocksOfARun& first, BlocksOfARun& second) {
  const auto slopes = TryToFind(first, second);
  EXPECT_TRUE(slopes.ok()) << slopes.status();
  EXPECT_THAT(slopes->devices, SizeIs(1));
  const Slope& slope = slopes->devices.front();
  const GrowthParts& parts = slope.parts;
  EXPECT_EQ(parts.constant + parts.linear + parts.quadratic + parts.unclear,
            slope.moment.new_bytes);
  return slope;
}

TEST(SlopeTest, LongerSequencesGrowLinearlyAndQuadratically) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(4, 256);
  const Slope slope = FindOne(small, large);
  EXPECT_EQ(slope.unit, Slope::Unit::kToken);
  EXPECT_EQ(slope.parts.constant, 2 * kMiB);
  EXPECT_EQ(slope.parts.linear, 4u * 256 * (4096 + 8));
  EXPECT_EQ(slope.parts.quadratic, 4u * 256 * 256 * 8);
  EXPECT_EQ(slope.parts.unclear, 0u);
  EXPECT_DOUBLE_EQ(slope.PerUnit(slope.parts.linear), 4096 + 8);
  ASSERT_THAT(slope.rows, SizeIs(3));
  EXPECT_EQ(slope.rows[0].row.frames.front().function, "linear");
  EXPECT_EQ(slope.rows[0].growth, Growth::kLinear);
  EXPECT_EQ(slope.rows[1].row.frames.front().function, "scores");
  EXPECT_EQ(slope.rows[1].growth, Growth::kQuadratic);
  ASSERT_THAT(slope.square, SizeIs(1));
  EXPECT_EQ(slope.square[0].shape, "[4, 256, 256]");
  EXPECT_EQ(slope.square_bytes, slope.parts.quadratic);
}

TEST(SlopeTest, MoreSamplesAndLongerSequencesAreTokens) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(6, 256);
  const Slope slope = FindOne(small, large);
  EXPECT_EQ(slope.unit, Slope::Unit::kToken);
  EXPECT_EQ(slope.parts.linear, 6u * 256 * (4096 + 8));
  EXPECT_EQ(slope.parts.quadratic, 6u * 256 * 256 * 8);
}

TEST(SlopeTest, LargerBatchesGrowLinearlyPerSample) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(8, 128);
  const Slope slope = FindOne(small, large);
  EXPECT_EQ(slope.unit, Slope::Unit::kSample);
  EXPECT_EQ(slope.parts.quadratic, 0u);
  EXPECT_DOUBLE_EQ(slope.PerUnit(slope.parts.linear), 128 * (4096 + 8 + 128 * 8));
  EXPECT_THAT(slope.square, SizeIs(0));
}

TEST(SlopeTest, OrderOfTheRunsDoesNotMatter) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(4, 256);
  const auto slopes = TryToFind(large, small);
  ASSERT_TRUE(slopes.ok()) << slopes.status();
  EXPECT_TRUE(slopes->swapped);
  EXPECT_EQ(slopes->devices.front().large.tokens, 256u);
}

TEST(SlopeTest, GrowthBetweenTwoFactorsIsDivided) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(4, 256);
  // 4 MiB and 8 KiB per token.
  small.Hold(Category::kActivations, "[4, 128, 8]", 8 * kMiB, "mixed");
  large.Hold(Category::kActivations, "[4, 256, 8]", 12 * kMiB, "mixed");
  const Slope slope = FindOne(small, large);
  EXPECT_EQ(slope.rows[0].row.frames.front().function, "mixed");
  EXPECT_EQ(slope.rows[0].growth, Growth::kLinear);
  EXPECT_EQ(slope.rows[0].parts.constant, 4 * kMiB);
  EXPECT_EQ(slope.rows[0].parts.linear, 8 * kMiB);
}

TEST(SlopeTest, WhatShrinksOrIsOnlyInOneRunIsUnclear) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(4, 256);
  small.Hold(Category::kTemporaries, "", 8 * kMiB, "shrinks");
  large.Hold(Category::kTemporaries, "", 6 * kMiB, "shrinks");
  large.Hold(Category::kTemporaries, "", 1 * kMiB, "only_there");
  EXPECT_EQ(FindOne(small, large).parts.unclear, 7 * kMiB);
}

TEST(SlopeTest, WithoutShapesBytesOfInputsAreCompared) {
  BlocksOfARun small, large;
  small.Hold(Category::kInputs, "", kMiB, "load");
  large.Hold(Category::kInputs, "", 2 * kMiB, "load");
  small.Hold(Category::kActivations, "", 10 * kMiB, "forward");
  large.Hold(Category::kActivations, "", 40 * kMiB, "forward");
  const Slope slope = FindOne(small, large);
  EXPECT_EQ(slope.unit, Slope::Unit::kByte);
  EXPECT_EQ(slope.parts.linear, 2 * kMiB);
  EXPECT_EQ(slope.parts.quadratic, 40 * kMiB);
}

TEST(SlopeTest, EqualInputsHaveNoSlope) {
  BlocksOfARun small, large;
  small.HoldModel(4, 128);
  large.HoldModel(4, 128);
  const auto slopes = TryToFind(small, large);
  ASSERT_FALSE(slopes.ok());
  EXPECT_THAT(std::string(slopes.status().message()), HasSubstr("another batch size"));
}

}  // namespace
}  // namespace gmt::analysis
