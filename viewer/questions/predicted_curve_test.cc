#include "viewer/questions/predicted_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "answers/whatif/whatif_answer.h"
#include "format/units.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {
namespace {

using ::testing::HasSubstr;

constexpr char kExpandable[] = "expandable_segments:True";

class PredictedCurveTest : public ::testing::Test {
 protected:
  // Two segments of 40 MiB are cached when 80 MiB are requested.
  PredictedCurveTest() {
    for (const uint64_t segment : {1, 2}) Segment(segment, 40 * kMiB);
    for (const uint64_t segment : {1, 2}) script_.FreeBlock(segment * kGiB);
    Segment(3, 80 * kMiB);
  }
  void Segment(uint64_t number, uint64_t bytes) {
    script_.Alloc(number * kGiB, bytes);
    script_.Block(number * kGiB, bytes);
  }
  void Open() {
    analysis::Trace trace = script_.Build();
    trace.devices = {{0, "GPU", 24 * kGiB}};
    recording_ = answers::RecordingSoFar("run.gmt", std::move(trace), script_.definitions());
    index_.BuildCurves(recording_->trace(), [](std::string_view, double) {});
    predictions_ = std::make_unique<Predictions>(recording_->examination());
  }
  absl::StatusOr<PredictedCurve> Curve(const std::string& settings, uint32_t columns) {
    const auto peaks =
        index_.SelectPeaks({.lane = 0,
                            .axis = Axis::kEvent,
                            .from = 0,
                            .to = static_cast<double>(recording_->trace().last_step() + 1),
                            .columns = columns});
    EXPECT_TRUE(peaks.ok()) << peaks.status();
    return predictions_->Curve(0, settings, *peaks);
  }
  // What `gpumemtrace whatif` prints as the peak.
  uint64_t PeakOfCommand(const std::string& settings) {
    answers::WhatifOptions options;
    options.settings = {settings};
    const auto answer = answers::WhatifAnswer::Make(*recording_, options);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return nlohmann::json::parse(answer->Json())["scenarios"][1]["peak_reserved_bytes"];
  }

  analysis::EventScript script_;
  std::unique_ptr<answers::Recording> recording_;
  ViewIndex index_;
  std::unique_ptr<Predictions> predictions_;
};

TEST_F(PredictedCurveTest, ItsHighestColumnIsThePeakThatTheCommandPrints) {
  Open();
  for (const std::string settings : {"", kExpandable, "max_split_size_mb:64"}) {
    for (const uint32_t columns : {1, 3, 8, 50}) {
      const auto curve = Curve(settings, columns);
      ASSERT_TRUE(curve.ok()) << curve.status();
      EXPECT_EQ(*std::max_element(curve->reserved.begin(), curve->reserved.end()),
                curve->peak_bytes);
      EXPECT_EQ(curve->peak_bytes, PeakOfCommand(settings)) << settings;
    }
  }
}

TEST_F(PredictedCurveTest, HasInEachColumnTheMostThatIsReservedThere) {
  Open();
  // Events: segment, block, segment, block, two frees, segment, block.
  EXPECT_THAT(Curve(kExpandable, 9)->reserved,
              testing::ElementsAre(0, 0, 40 * kMiB, 40 * kMiB, 80 * kMiB, 80 * kMiB, 80 * kMiB,
                                   80 * kMiB, 80 * kMiB));
  EXPECT_THAT(Curve("", 3)->reserved, testing::ElementsAre(40 * kMiB, 80 * kMiB, 160 * kMiB));
}

TEST_F(PredictedCurveTest, EndsWhereARequestWouldFail) {
  script_.Alloc(4 * kGiB, 100 * kMiB);
  script_.Block(4 * kGiB, 100 * kMiB);
  Open();
  const auto curve = Curve("per_process_memory_fraction:0.01", 11);  // 245 MiB
  ASSERT_TRUE(curve.ok()) << curve.status();
  EXPECT_EQ(curve->failure, std::nullopt);                             // the cache is released
  const auto failed = Curve("per_process_memory_fraction:0.006", 11);  // 147 MiB
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->failure, 10u);
  EXPECT_FALSE(std::isnan(failed->reserved[8]));
}

TEST_F(PredictedCurveTest, RefusesWithTheReason) {
  Open();
  EXPECT_EQ(Curve("no_such_option:1", 9).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(predictions_->Curve(3, "", {}).status().message()),
              HasSubstr("nothing to replay"));
}

TEST_F(PredictedCurveTest, IsRefusedIfTheReplayDoesNotAgreeWithTheRecording) {
  script_.FreeBlock(3 * kGiB);
  Segment(4, 80 * kMiB);  // PyTorch would have used the cached segment
  Open();
  EXPECT_THAT(std::string(Curve(kExpandable, 9).status().message()),
              HasSubstr("does not agree with the recording"));
}

}  // namespace
}  // namespace gmt::viewer
