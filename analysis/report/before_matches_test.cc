#include "analysis/report/before_matches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/report/report.h"
#include "analysis/testing/training_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A training loop after an attach: its parameters, the optimizer's tensors and other memory are
// reported without stacks; the loop continues and keeps blocks of `leaked` sizes.
class BeforeMatchesTest : public ::testing::Test {
 protected:
  void HeldBefore(uint64_t size, const std::string& truth) {
    const uint64_t address = NewAddress();
    training_.script().Api(training_.script().Block(address, size), kBeforeAttachApi);
    truth_[address] = truth;
  }
  // Adds one parameter per layer, and `tensors` of the optimizer for each.
  void Model(const std::vector<uint64_t>& sizes, int tensors) {
    layers_ = sizes;
    for (const uint64_t size : sizes) HeldBefore(size, "before/state");
    for (const uint64_t size : sizes) {
      for (int i = 0; i < tensors; ++i) HeldBefore(size, "before/state");
    }
  }
  void Train(int steps, const std::vector<uint64_t>& leaked) {
    const uint32_t append = training_.script().Stack({"append", "train"});
    for (int step = 0; step < steps; ++step) {
      training_.script().Mark("step", static_cast<uint64_t>(step));
      const uint64_t activation = NewAddress();
      training_.Block(activation, 3 * kMiB, training_.InForward());
      std::vector<uint64_t> gradients;
      training_.Backward([&] {
        for (const uint64_t size : layers_) {
          gradients.push_back(NewAddress());
          const uint64_t rest = step == 7 ? unsplit_once_ : 0;
          training_.Block(gradients.back(), size + rest, training_.InBackward("MmBackward0"));
        }
        training_.Free(activation);
      });
      training_.Optimizer([] {});
      for (const uint64_t gradient : gradients) training_.Free(gradient);
      for (const uint64_t size : leaked) training_.Block(NewAddress(), size, append);
    }
  }
  uint64_t NewAddress() { return next_ += uint64_t{1} << 30; }

  void Match() {
    trace_ = training_.script().Build();
    examination_.emplace(trace_, training_.script().definitions());
    categories_.emplace(Categorize(*examination_));
    matches_.emplace(*examination_, *categories_);
  }
  // By guessed purpose: the number of correct and of wrong blocks.
  struct Score {
    uint64_t right = 0, wrong = 0;
    bool operator==(const Score&) const = default;
  };
  std::map<std::string, Score> Scores() const {
    std::map<std::string, Score> scores;
    for (RowId row = 0; row < trace_.rows.count(); ++row) {
      const BeforeGroup* group = matches_->Of(row);
      const auto truth = truth_.find(trace_.rows.address[row]);
      EXPECT_EQ(group != nullptr, truth != truth_.end());
      if (group == nullptr || truth == truth_.end()) continue;
      Score& score = scores[group->id];
      ++(group->id == truth->second ? score.right : score.wrong);
    }
    return scores;
  }

  TrainingScript training_;
  std::vector<uint64_t> layers_;
  uint64_t unsplit_once_ = 0;              // excess size of gradients' blocks in one of the steps
  std::map<uint64_t, std::string> truth_;  // by address
  uint64_t next_ = 0;
  Trace trace_;
  std::optional<Examination> examination_;
  std::optional<Categories> categories_;
  std::optional<BeforeMatches> matches_;
};

TEST_F(BeforeMatchesTest, AdamsStateALeakAndTheRestAreDistinguishedBySize) {
  Model({kMiB, 4 * kMiB, 512, 6 * kMiB, 512}, 2);
  for (int i = 0; i < 75; ++i) HeldBefore(2 * kMiB, "before/leak/1");
  for (int i = 0; i < 9; ++i) HeldBefore(7 * kMiB, "before/unknown");
  Train(220, {2 * kMiB});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{15, 0}),
                                             Pair("before/leak/1", Score{75, 0}),
                                             Pair("before/unknown", Score{9, 0})));
}

TEST_F(BeforeMatchesTest, LeakedBlocksAreNotAssignedToAnOptimizerWithoutState) {
  Model({kMiB, 4 * kMiB, 512, 6 * kMiB}, 0);
  for (int i = 0; i < 75; ++i) HeldBefore(kMiB, "before/leak/1");  // of a parameter's size
  Train(220, {kMiB});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{4, 0}),
                                             Pair("before/leak/1", Score{75, 0})));
}

// An attach between a backward pass and the end of its step finds gradients.
TEST_F(BeforeMatchesTest, GradientsOfTheStepOfTheAttachAreNotOptimizerState) {
  for (const bool in_optimizer : {false, true}) {
    SCOPED_TRACE(in_optimizer);
    training_ = {};
    truth_.clear();
    Model({kMiB, 4 * kMiB, 512, 6 * kMiB}, 0);
    std::vector<uint64_t> gradients;
    for (const uint64_t size : layers_) {
      HeldBefore(size, "before/unknown");
      gradients.push_back(next_);
    }
    for (int i = 0; i < 75; ++i) HeldBefore(kMiB, "before/leak/1");
    if (in_optimizer) training_.Optimizer([] {});
    for (const uint64_t gradient : gradients) training_.Free(gradient);
    Train(220, {kMiB});
    Match();
    EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{4, 0}),
                                               Pair("before/unknown", Score{4, 0}),
                                               Pair("before/leak/1", Score{75, 0})));
  }
}

// An allocator that does not split a block leaves it up to a mebibyte too big.
TEST_F(BeforeMatchesTest, AGradientThatWasNotSplitOnceDoesNotAddASize) {
  unsplit_once_ = kMiB / 2;
  Model({2 * kMiB, 4 * kMiB, 6 * kMiB}, 2);
  for (int i = 0; i < 5; ++i) HeldBefore(2 * kMiB + unsplit_once_, "before/unknown");
  Train(220, {});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{9, 0}),
                                             Pair("before/unknown", Score{5, 0})));
}

TEST_F(BeforeMatchesTest, AParameterThatWasNotSplitIsFound) {
  Model({2 * kMiB, 4 * kMiB, 6 * kMiB}, 2);
  layers_.push_back(8 * kMiB);
  HeldBefore(8 * kMiB + kMiB / 2, "before/state");
  HeldBefore(8 * kMiB, "before/state");
  HeldBefore(8 * kMiB + kMiB / 4, "before/state");
  HeldBefore(10 * kMiB, "before/unknown");
  Train(220, {});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{12, 0}),
                                             Pair("before/unknown", Score{1, 0})));
}

TEST_F(BeforeMatchesTest, AGradientThatIsNeverSplitMatchesTheNearestParameter) {
  Model({2 * kMiB, 4 * kMiB, 6 * kMiB}, 0);
  layers_[1] += 100'000;
  HeldBefore(4 * kMiB - 200'000, "before/unknown");
  Train(220, {});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{3, 0}),
                                             Pair("before/unknown", Score{1, 0})));
}

TEST_F(BeforeMatchesTest, ALeakOfASizeCloseToAParametersIsALeak) {
  Model({2 * kMiB, 4 * kMiB}, 2);
  for (int i = 0; i < 75; ++i) HeldBefore(2 * kMiB - 100'000, "before/leak/1");
  Train(220, {2 * kMiB - 100'000});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{6, 0}),
                                             Pair("before/leak/1", Score{75, 0})));
}

TEST_F(BeforeMatchesTest, ASizeThatManyOtherStacksKeepMatchesNoSuspect) {
  Model({kMiB, 4 * kMiB}, 2);
  for (int i = 0; i < 40; ++i) HeldBefore(2 * kMiB, "before/unknown");
  const uint32_t others = training_.script().Stack({"prefetch", "train"});
  for (int i = 0; i < 300; ++i) training_.Block(NewAddress(), 2 * kMiB, others);
  Train(220, {2 * kMiB});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{6, 0}),
                                             Pair("before/unknown", Score{40, 0})));
}

TEST_F(BeforeMatchesTest, TooFrequentSizeOfALeakIsLeftUnknown) {
  Model({kMiB, 4 * kMiB}, 2);
  for (const uint64_t size : {2 * kMiB, 3 * kMiB, 5 * kMiB}) {
    for (int i = 0; i < 75; ++i) HeldBefore(size, "before/leak/1");
  }
  for (int i = 0; i < 5000; ++i) HeldBefore(512, "before/unknown");
  Train(220, {2 * kMiB, 3 * kMiB, 5 * kMiB, 512});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{6, 0}),
                                             Pair("before/leak/1", Score{225, 0}),
                                             Pair("before/unknown", Score{5000, 0})));
}

TEST_F(BeforeMatchesTest, WithoutABackwardPassOrASuspectEverythingIsUnknown) {
  for (int i = 0; i < 5; ++i) HeldBefore(kMiB, "before/unknown");
  Train(20, {kMiB});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/unknown", Score{5, 0})));
}

TEST_F(BeforeMatchesTest, MemoryFreedSinceBelongsToNoLeak) {
  HeldBefore(2 * kMiB, "before/unknown");
  const uint64_t queued = next_;
  HeldBefore(2 * kMiB, "before/leak/1");
  Model({kMiB}, 0);
  Train(110, {2 * kMiB});
  training_.Free(queued);
  Train(110, {2 * kMiB});
  Match();
  EXPECT_THAT(Scores(), UnorderedElementsAre(Pair("before/state", Score{1, 0}),
                                             Pair("before/leak/1", Score{1, 0}),
                                             Pair("before/unknown", Score{1, 0})));
}

TEST_F(BeforeMatchesTest, ARecordingFromTheBeginningHasNoGroups) {
  Train(220, {kMiB});
  Match();
  EXPECT_THAT(matches_->groups(), IsEmpty());
  EXPECT_EQ(matches_->Of(0), nullptr);
}

TEST_F(BeforeMatchesTest, RowsOfAReportAddUpAndAreLabelledAsGuesses) {
  EventScript& script = training_.script();
  script.Api(script.Alloc(uint64_t{1} << 50, 100 * kMiB), kBeforeAttachApi);
  script.Api(script.Block(uint64_t{1} << 50, kMiB), kBeforeAttachApi);
  truth_[uint64_t{1} << 50] = "before/state";
  Model({kMiB, 4 * kMiB}, 2);
  for (int i = 0; i < 75; ++i) HeldBefore(2 * kMiB, "before/leak/1");
  Train(220, {2 * kMiB});
  Match();
  ReportOptions options;
  options.at = ParseAt("end").value();
  const Report report = MakeReport(*examination_, *categories_, options).value();
  uint64_t bytes = 0, of_before = 0;
  std::vector<std::string> labels;
  for (const ReportRow& row : report.rows) {
    bytes += row.bytes;
    if (!row.before) continue;
    of_before += row.bytes;
    labels.push_back(row.label);
    EXPECT_TRUE(row.unknown) << row.id;
    EXPECT_EQ(row.before->is_guess(), row.label.ends_with("(guess)")) << row.label;
  }
  EXPECT_EQ(bytes, report.devices.at(0).bytes);
  EXPECT_EQ(of_before, (100 + 15 + 150) * kMiB);
  EXPECT_THAT(labels, UnorderedElementsAre(HasSubstr("parameters and optimizer state"),
                                           HasSubstr("free in segments"),
                                           HasSubstr("same sizes as append.py:10, suspect leak/1"),
                                           HasSubstr("unknown")));
}

}  // namespace
}  // namespace gmt::analysis
