#include "analysis/leaks/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/event_script.h"
#include "analysis/python_stack.h"

namespace gmt::analysis {
namespace {

using ::testing::SizeIs;

class SuspectsTest : public ::testing::Test {
 protected:
  uint32_t Stack(const std::vector<PythonFrame>& places) { return PythonStack(script_, places); }
  uint32_t Layer(uint32_t line) {
    return Stack({{"linear", "/site-packages/torch/nn/functional.py", 5},
                  {"Net.forward", "/src/net.py", line},
                  {"train", "/src/train.py", 41},
                  {"<module>", "/src/train.py", 90}});
  }
  uint32_t OfTrain(uint32_t line) {
    return Stack({{"train", "/src/train.py", line}, {"<module>", "/src/train.py", 90}});
  }
  uint32_t Loss(uint32_t line) {
    return Stack({{"cross_entropy", "/site-packages/torch/nn/functional.py", 9},
                  {"train", "/src/train.py", line},
                  {"<module>", "/src/train.py", 90}});
  }
  void Leak(uint32_t stack, const std::vector<double>& survivors, double rate = 100,
            uint32_t heap = 2) {
    SiteGrowth& site = leaking_.emplace_back();
    site.key.stack = stack;
    site.key.heap = heap;
    site.verdict.growth = Growth::kSurvivors;
    site.verdict.survivors = survivors;
    site.verdict.bytes_per_cycle.slope = rate;
    loop_.push_back(site.key);
  }
  std::vector<SiteGroup> Merge() {
    texts_ = std::make_unique<StackTexts>(script_.definitions());
    return MergeLeaks(leaking_, loop_, *texts_);
  }

  EventScript script_;
  std::vector<SiteGrowth> leaking_;
  std::vector<SiteKey> loop_;
  std::unique_ptr<StackTexts> texts_;
  const std::vector<double> always_ = {2, 2, 2, 2, 2, 2}, sometimes_ = {1, 0, 2, 0, 0, 1};
};

TEST_F(SuspectsTest, LayersAndLossOfOnePassAreOneGraph) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  Leak(Loss(42), always_);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0], SizeIs(5));
}

TEST_F(SuspectsTest, TensorOfAnotherLineStaysASuspectOfItsOwn) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  Leak(OfTrain(50), always_);
  EXPECT_THAT(Merge(), SizeIs(2));
}

TEST_F(SuspectsTest, OtherCyclesAreOtherLeaks) {
  Leak(Layer(10), always_);
  Leak(Layer(11), sometimes_);
  Leak(OfTrain(50), always_);
  EXPECT_THAT(Merge(), SizeIs(3));
}

TEST_F(SuspectsTest, HeapsAreNotMixed) {
  Leak(Layer(10), always_);
  Leak(Layer(11), always_, 50, kDriverHeap);
  Leak(OfTrain(50), always_);
  EXPECT_THAT(Merge(), SizeIs(3));
}

TEST_F(SuspectsTest, WithoutFramesLockStepAloneMerges) {
  Leak(0, always_);
  Leak(0, always_);
  Leak(0, sometimes_);
  EXPECT_THAT(Merge(), SizeIs(2));
}

TEST_F(SuspectsTest, CommonFrameOfLayersIsWhoCalledTheModel) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  loop_.push_back({0, 2, OfTrain(60), 0, 0});
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Place(), "train.py:41");
}

TEST_F(SuspectsTest, CommonFrameOfTwoLinesIsTheBiggersLine) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  Leak(Loss(42), always_, 1000);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Name(), "train");
}

TEST_F(SuspectsTest, StackOfNextToNothingDoesNotHideTheLineOfTheRest) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_, 1e6);
  Leak(Loss(42), always_, 4);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Place(), "train.py:41");
}

TEST_F(SuspectsTest, BlocksOfABackwardPassAreToldByTheForwardPass) {
  Leak(0, always_);
  leaking_[0].key.forward_stack = Layer(12);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Place(), "net.py:12");
}

TEST_F(SuspectsTest, WithoutFramesThereIsNoCommonFrame) {
  Leak(0, always_);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_FALSE(CommonFrame(groups[0], *texts_).has_value());
}

}  // namespace
}  // namespace gmt::analysis
