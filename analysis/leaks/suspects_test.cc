#include "analysis/leaks/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/leaks/leak_kind.h"
#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"

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

TEST_F(SuspectsTest, TensorOfAnotherLineIsASeparateSuspect) {
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

TEST_F(SuspectsTest, CommonFrameOfLayersIsTheModelsCaller) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  loop_.push_back({0, 2, OfTrain(60), 0, 0});
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Place(), "train.py:41");
}

TEST_F(SuspectsTest, CommonFrameOfTwoLinesIsTheLargersLine) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_);
  Leak(Loss(42), always_, 1000);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Name(), "train");
}

TEST_F(SuspectsTest, NegligibleStackDoesNotHideTheLineOfTheRest) {
  for (uint32_t line = 10; line < 14; ++line) Leak(Layer(line), always_, 1e6);
  Leak(Loss(42), always_, 4);
  const std::vector<SiteGroup> groups = Merge();
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(CommonFrame(groups[0], *texts_)->Place(), "train.py:41");
}

TEST_F(SuspectsTest, BlocksOfABackwardPassAreIdentifiedByTheForwardPass) {
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

// Stacks of a library's model: a module whose forward function calls another module.
class LayersOfLeaksTest : public SuspectsTest {
 protected:
  uint32_t InModel(const char* module, uint32_t line) {
    constexpr char kModules[] = "/site-packages/torch/nn/modules/module.py";
    return Stack({{module, "/site-packages/gpt/model.py", line},
                  {"Module._call_impl", kModules},
                  {"GPT.forward", "/site-packages/gpt/model.py", 7},
                  {"Module._call_impl", kModules},
                  {"train", "/src/train.py", 41}});
  }
  std::string Layer() {
    SiteGroup group;
    for (const SiteGrowth& site : leaking_) group.push_back(&site);
    StackTexts texts(script_.definitions());
    return CommonLayer(group, texts);
  }
};

TEST_F(LayersOfLeaksTest, ModuleOfOneLineIsNamedWithTheLine) {
  Leak(InModel("MLP.forward", 33), always_);
  EXPECT_EQ(Layer(), "GPT > MLP (model.py:33)");
}

TEST_F(LayersOfLeaksTest, ModulesOfSeveralLinesAreNamedAsFarAsTheyAgree) {
  Leak(InModel("MLP.forward", 33), always_);
  Leak(InModel("MLP.forward", 34), always_);
  Leak(InModel("Attention.forward", 12), always_, 1);  // negligible
  EXPECT_EQ(Layer(), "GPT");
}

TEST_F(LayersOfLeaksTest, WithoutModulesThereIsNoLayer) {
  Leak(OfTrain(50), always_);
  EXPECT_EQ(Layer(), "");
}

class ReasonTest : public SuspectsTest {
 protected:
  std::string Reason(const std::vector<double>& survivors, uint64_t cycles) {
    Leak(OfTrain(50), survivors);
    SiteGrowth& site = leaking_[0];
    for (const double kept : survivors) site.verdict.count += static_cast<uint64_t>(kept);
    site.births = site.live_count = site.verdict.count;
    const std::string reason = ReasonOf(Merge()[0], LeakKind::kTensorKept, cycles);
    return reason.substr(0, reason.find(','));
  }
};

TEST_F(ReasonTest, RhythmIsReported) {
  std::vector<double> survivors(100);
  for (size_t i = 4; i < survivors.size(); i += 10) survivors[i] = 12;
  EXPECT_EQ(Reason(survivors, 100), "12 blocks kept every 10 steps");
}

TEST_F(ReasonTest, RhythmIsCountedInStepsWhenChunksAreLonger) {
  std::vector<double> survivors(100);  // a chunk has four steps
  for (size_t step = 2; step < 400; step += 10) survivors[step / 4] += 1;
  EXPECT_EQ(Reason(survivors, 400), "1 block kept every 10 steps");
}

TEST_F(ReasonTest, BlocksAtNoRegularStepsHaveNoRhythm) {
  std::vector<double> survivors(100);
  for (const size_t i : {3, 5, 20, 41, 47, 70, 71, 80, 90, 99}) survivors[i] = 1;
  EXPECT_EQ(Reason(survivors, 100), "1 block kept every 10 steps");
}

TEST_F(ReasonTest, BlocksOfEveryStepAreCounted) {
  EXPECT_EQ(Reason(std::vector<double>(100, 2), 100), "2 blocks kept per step");
}

TEST_F(SuspectsTest, OptionOfALibraryFixesItsEvaluationLoop) {
  constexpr char kTrainer[] = "/site-packages/transformers/trainer.py";
  Leak(Stack({{"torch_pad_and_concatenate", "/site-packages/transformers/trainer_pt_utils.py"},
              {"Trainer.evaluation_loop", kTrainer},
              {"main", "/src/train.py"}}),
       always_);
  const std::vector<SiteGroup> groups = Merge();
  EXPECT_EQ(OptionFor(groups[0], LeakKind::kCatGrowth, *texts_), "eval_accumulation_steps");
  EXPECT_EQ(OptionFor(groups[0], LeakKind::kTensorKept, *texts_), "");
}

TEST_F(SuspectsTest, ConcatenationOfTheProgramsOwnHasNoOption) {
  Leak(OfTrain(50), always_);
  const std::vector<SiteGroup> groups = Merge();
  EXPECT_EQ(OptionFor(groups[0], LeakKind::kCatGrowth, *texts_), "");
}

}  // namespace
}  // namespace gmt::analysis
