#include "answers/leaks/leaks_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/testing/event_script.h"
#include "answers/leaks/leaks_answer.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LeaksTextTest : public ::testing::Test {
 protected:
  template <typename Cycle>
  void Run(uint32_t cycles, Cycle cycle) {
    script_.Mark("step", 0);
    for (uint32_t i = 0; i < cycles; ++i) {
      cycle(i);
      script_.Mark("step", i + 1);
    }
  }
  void Keep(uint64_t size, const analysis::EventScript::Functions& stack) {
    script_.Block(next_ += uint64_t{1} << 30, size, stack);
  }
  analysis::LeakReport Find() {
    trace_ = script_.Build();
    examination_ = std::make_unique<analysis::Examination>(trace_, script_.definitions());
    return analysis::FindLeaks(*examination_);
  }
  std::string Text(const std::vector<std::string>& lacks = {}) { return TextOf(Find(), lacks); }
  std::string TextOf(const analysis::LeakReport& report,
                     const std::vector<std::string>& lacks = {}) {
    analysis::SourceLines sources(0);
    std::string text = LeaksText(report, {"run.gmt", 3, lacks}, sources, Terminal{});
    std::istringstream lines(text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_LE(count, 25u) << text;
    return text;
  }
  static std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

  analysis::EventScript script_;
  analysis::Trace trace_;
  std::unique_ptr<analysis::Examination> examination_;
  uint64_t next_ = 0;
};

TEST_F(LeaksTextTest, MissingDeviceIsNotFound) {
  Keep(kMiB, {"append", "train"});
  const auto recording = RecordingSoFar("run.gmt", script_.Build(), script_.definitions());
  EXPECT_TRUE(LeaksAnswer::Make(*recording, {.device = 0, .window = {}}).ok());
  const absl::Status status = LeaksAnswer::Make(*recording, {.device = 1, .window = {}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no GPU 1; it has: 0"));
}

TEST_F(LeaksTextTest, LeakIsInTheFirstLineWithItsRatePlaceAndBytes) {
  Run(200, [&](uint32_t) { Keep(3 * kMiB, {"append", "train"}); });
  EXPECT_EQ(FirstLine(Text()), "Leak: 3.00 MiB per step on GPU 0 at append.py:10, 600 MiB so far.");
}

TEST_F(LeaksTextTest, FollowUpCommandIsTheLastLine) {
  Run(200, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  EXPECT_THAT(Text(), EndsWith("\nNext: gpumemtrace show run.gmt leak/1\n"));
}

TEST_F(LeaksTextTest, NoLeakShowsTheMinimum) {
  Run(200, [&](uint32_t cycle) {
    if (cycle == 0) Keep(64 * kMiB, {"parameters", "train"});
  });
  const std::string text = Text();
  EXPECT_EQ(FirstLine(text),
            "No leak: the minimum of GPU 0 stays at 64.0 MiB over 200 steps, and no stack keeps "
            "growing.");
  EXPECT_THAT(text, HasSubstr("it does not grow"));
}

TEST_F(LeaksTextTest, MinimumThatVariesIsNotSaidToStay) {
  Run(200, [&](uint32_t cycle) {
    if (cycle == 0) Keep(64 * kMiB, {"parameters", "train"});
  });
  analysis::LeakReport report = Find();
  ASSERT_EQ(report.minima.size(), 1u);
  report.minima[0].first_bytes = 40 * kMiB;
  EXPECT_EQ(FirstLine(TextOf(report)),
            "No leak: neither the minimum of GPU 0 nor a stack keeps growing over 200 steps.");
}

TEST_F(LeaksTextTest, TooFewStepsShowsTheRequiredNumber) {
  Run(39, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const std::string text = Text();
  EXPECT_EQ(FirstLine(text), "Too early to tell: 39 of at least 100 steps were recorded.");
  EXPECT_THAT(text, Not(HasSubstr("append")));
}

TEST_F(LeaksTextTest, UnexplainedGrowthIsNotReportedAsNoLeak) {
  Run(200, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  analysis::LeakReport report = Find();
  report.suspects.clear();
  const std::string text = TextOf(report);
  EXPECT_EQ(FirstLine(text),
            "Not sure: the minimum of GPU 0 rises by 1.00 MiB per step, and no stack explains it; "
            "record longer.");
  EXPECT_THAT(text, EndsWith("\nNext: record at least 400 steps: gpumemtrace run -- COMMAND\n"));
}

TEST_F(LeaksTextTest, GrowthOfTooFewStepsIsPrintedAsPerhaps) {
  Run(60, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  EXPECT_THAT(Text(), HasSubstr("; perhaps +1.00 MiB per step"));
}

TEST_F(LeaksTextTest, RecordingWithoutTimesPrintsNone) {
  Run(200, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  analysis::LeakReport report = Find();
  report.watched_ns = report.cycles.period_ns = 0;
  EXPECT_THAT(TextOf(report), HasSubstr("\n200 steps, by mark step; the recording has no "
                                        "times\n"));
}

TEST_F(LeaksTextTest, RoomForOneStepIsSingular) {
  Run(200, [&](uint32_t) {});
  analysis::LeakReport report = Find();
  analysis::BenignGrowth& growth = report.benign.emplace_back();
  growth.label = "cache";
  growth.bytes_per_cycle = kMiB;
  growth.room = kMiB;
  EXPECT_THAT(TextOf(report), HasSubstr(", room for 1 more step\n"));
}

TEST_F(LeaksTextTest, CacheOfAGenerationHasItsRateAndTheRoomThatIsLeft) {
  uint64_t last = 0;
  Run(200, [&](uint32_t i) {
    Keep((10 + i) * kMiB, {"transformers/cache_utils", "main"});
    if (last != 0) script_.FreeBlock(last);
    last = next_;
  });
  script_.Sample(209 * kMiB, 1024 * kMiB);
  const std::string text = Text();
  EXPECT_EQ(
      FirstLine(text),
      "No leak: the KV cache of the sequences being generated grows by 1.00 MiB per step, 207 "
      "MiB so far.");
  EXPECT_THAT(text, ContainsRegex("being generated: [0-9]+ MiB, room for [0-9]+ more steps, "));
}

TEST_F(LeaksTextTest, LiveSetOfOneMomentHasNoHistory) {
  analysis::SourceLines sources(0);
  const analysis::LeakReport report = Find();
  const LeaksShown shown{"now.prof", 3, {}, false};
  const std::string text = LeaksText(report, shown, sources, Terminal{});
  EXPECT_THAT(text, StartsWith("No history: the file shows one moment"));
  EXPECT_THAT(text, EndsWith("\nNext: gpumemtrace diff now.prof LATER_FILE\n"));
}

TEST_F(LeaksTextTest, EmptyRecordingIsTooEarlyToTell) {
  EXPECT_THAT(Text(), StartsWith("Too early to tell: the recording has no allocations"));
}

TEST_F(LeaksTextTest, WithoutStepsTheUnitIsParts) {
  for (int i = 0; i < 4000; ++i) Keep(kMiB, {"append", "serve"});
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("Possibly a leak: "));
  EXPECT_THAT(FirstLine(text), HasSubstr("per part"));
  EXPECT_THAT(text, HasSubstr("no steps were found"));
}

TEST_F(LeaksTextTest, ManyOfEverythingStayWithinThePage) {
  Run(300, [&](uint32_t cycle) {
    for (int i = 0; i < 6; ++i) {
      if (cycle % static_cast<uint32_t>(i + 2) == 0)
        Keep(kMiB, {"leak" + std::to_string(i) + std::string(120, 'x'), "train"});
      if (cycle == 100u + static_cast<uint32_t>(i))
        Keep(kMiB, {"once" + std::to_string(i), "train"});
    }
    for (int32_t device = 1; device < 8; ++device)
      script_.Block(next_ += uint64_t{1} << 30, kMiB, {"other", "train"}).device = device;
  });
  const std::string text = Text({std::string(200, 'a'), "b", "c", "d"});
  EXPECT_THAT(text, HasSubstr(" more: --top "));
}

TEST_F(LeaksTextTest, WhatGrowsIsNamedAlthoughItIsTooEarlyForAVerdict) {
  Run(60, [&](uint32_t) { Keep(kMiB, {"append", "train"}); });
  const analysis::LeakReport report = Find();
  const std::string text = TextOf(report);
  EXPECT_THAT(text, StartsWith("Too early to tell: 60 of at least 100 steps were recorded."));
  EXPECT_THAT(text, HasSubstr("growing so far, as a leak does, and as a cache or queue does"));
  EXPECT_THAT(text, HasSubstr("1.00 MiB per step, "));
  EXPECT_THAT(text, HasSubstr("append"));
  analysis::SourceLines sources(1);
  const auto json =
      nlohmann::json::parse(LeaksJson(report, {"run.gmt", 0, {}}, examination_->stacks(), sources));
  EXPECT_EQ(json["growing"].size(), 1);
  EXPECT_EQ(json["growing"][0]["common_frame"]["function"], "append");
}

TEST_F(LeaksTextTest, TextNamesTheSourceOfInferredSteps) {
  analysis::LeakReport report;
  report.cycles = {200, "stack 7 and 3 more that recur with it", 1'000'000, true, true};
  report.enough = true;
  EXPECT_THAT(TextOf(report), HasSubstr("inferred from stack 7"));
}

TEST_F(LeaksTextTest, JsonHasTheContractsKeysAndAddsUp) {
  Run(200, [&](uint32_t) {
    Keep(3 * kMiB, {"linear", "forward", "train"});
    Keep(kMiB, {"relu", "forward", "train"});
  });
  const analysis::LeakReport report = Find();
  analysis::SourceLines sources(1);
  const auto json =
      nlohmann::json::parse(LeaksJson(report, {"run.gmt", 9, {}}, examination_->stacks(), sources));
  EXPECT_EQ(json["schema"], "gpumemtrace.leaks/1");
  EXPECT_EQ(json["cycles"]["count"], 200);
  EXPECT_THAT(TextOf(report), HasSubstr("fix: " + json["suspects"][0]["fix"].get<std::string>()));
  EXPECT_EQ(json["cycles"]["source"], "mark step");
  EXPECT_TRUE(json["enough"].get<bool>());
  const auto& minima = json["minima"][0];
  EXPECT_EQ(minima["values"].back(), minima["last_bytes"]);
  EXPECT_EQ(minima["values"].size() * minima["cycles_per_value"].get<size_t>(), 200);
  for (const auto& suspect : json["suspects"]) {
    uint64_t bytes = 0;
    for (const auto& stack : suspect["stacks"]) {
      bytes += stack["bytes"].get<uint64_t>();
      EXPECT_FALSE(stack["frames"].empty());
    }
    EXPECT_EQ(suspect["bytes"], bytes);
    EXPECT_EQ(suspect["tier"], "leak");
    EXPECT_TRUE(suspect["eta_ns"].is_null());
    EXPECT_THAT(TextOf(report), HasSubstr(suspect["what"].get<std::string>() + "; "));
  }
}

}  // namespace
}  // namespace gmt::answers
