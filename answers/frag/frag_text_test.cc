#include "answers/frag/frag_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kA = 0x10000000, kB = 0x70000000;

class FragTextTest : public ::testing::Test {
 protected:
  std::string Text(size_t top = 3) {
    return With([&](const auto& devices, const auto& examination) {
      analysis::SourceLines sources(1);
      const std::string text = FragText(devices, examination, sources, "run.gmt", top, Terminal{});
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
      return text;
    });
  }
  nlohmann::json Json() {
    return nlohmann::json::parse(With([](const auto& devices, const auto& examination) {
      analysis::SourceLines sources(1);
      return FragJson(devices, examination, sources, "run.gmt", SIZE_MAX);
    }));
  }
  std::string With(const auto& print) {
    const analysis::Trace trace = script_.Build();
    const analysis::Examination examination(trace, script_.definitions());
    analysis::FragmentationOptions options;
    options.at.kind = analysis::At::kEnd;
    auto found = analysis::FindFragmentation(examination, options).value();
    return print(ReplayEach(examination, std::move(found)), examination);
  }
  void PinnedSegments(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      script_.Alloc(kA + i * 1024 * kMiB, 512 * kMiB);
      script_.Block(kA + i * 1024 * kMiB, 2 * kMiB, {"metric", "main"});
    }
  }
  // Two segments of 40 MiB, of which 2 MiB each are used, cannot serve the 70 MiB that follow.
  void RequestBesidePinnedSegments() {
    for (const uint64_t address : {kA, kB}) {
      script_.Alloc(address, 40 * kMiB);
      script_.Block(address, 40 * kMiB);
      script_.FreeBlock(address);
      script_.Block(address, 2 * kMiB, {"metric", "main"});
    }
    script_.Alloc(0xf0000000, 70 * kMiB);
    script_.Block(0xf0000000, 70 * kMiB);
  }
  analysis::EventScript script_;
};

TEST_F(FragTextTest, NothingReservedIsNotCalledFull) {
  script_.Alloc(kA, 40 * kMiB);
  script_.Block(kA, 2 * kMiB, {"metric", "main"});
  script_.FreeBlock(kA);
  script_.Free(kA);
  EXPECT_THAT(Text(), StartsWith("Nothing is reserved on GPU 0 at this moment"));
}

TEST_F(FragTextTest, VerdictHasFreeBytesLargestPieceAndPinningBlocks) {
  PinnedSegments(4);
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("1.99 GiB of 2.00 GiB reserved on GPU 0 are free, largest piece "
                               "510 MiB: 4 blocks pin 1.99 GiB\n"));
  EXPECT_THAT(text, HasSubstr("1.99 GiB        4     8.00 MiB  metric (metric.py:10)"));
  EXPECT_THAT(text, HasSubstr("when those blocks are freed"));
  // PyTorch's rules do not lead to these segments.
  EXPECT_THAT(text, HasSubstr("expandable_segments:True would free up to 1.99 GiB"));
  EXPECT_EQ(Json()["expandable_reserved_bytes"], nullptr);
  EXPECT_THAT(text, HasSubstr("Next: gpumemtrace show run.gmt stack/2"));
}

TEST_F(FragTextTest, ExpandableSegmentsAreReplayedIfTheReplayAgrees) {
  RequestBesidePinnedSegments();
  EXPECT_THAT(Text(), HasSubstr("expandable_segments:True would have reserved 80.0 MiB instead of "
                                "150 MiB at that moment, in a replay"));
  EXPECT_EQ(Json()["expandable_reserved_bytes"], 80 * kMiB);
}

TEST_F(FragTextTest, ExpandableSegmentsThatRaiseThePeakAreNotOnlyPraised) {
  // Each stream has 22 MiB. Expandable segments are mapped in pieces of 20 MiB, so they take 40.
  for (uint64_t stream = 1; stream <= 8; ++stream) {
    const uint64_t address = kB + (stream << 32);
    const auto on_stream = [&](format::Event& event) {
      event.present |= format::kHasStream;
      event.stream = stream;
    };
    on_stream(script_.Alloc(address, 22 * kMiB));
    on_stream(script_.Block(address, 22 * kMiB));
  }
  for (uint64_t stream = 1; stream <= 8; ++stream) script_.FreeBlock(kB + (stream << 32));
  for (uint64_t stream = 1; stream <= 8; ++stream) script_.Free(kB + (stream << 32));
  RequestBesidePinnedSegments();
  EXPECT_THAT(Text(), HasSubstr("expandable_segments:True would have reserved 80.0 MiB instead of "
                                "150 MiB at that moment, in a replay,\n"
                                "but more at its peak: 320 MiB instead of 176 MiB\n"));
}

TEST_F(FragTextTest, VerdictNamesEmptyCacheIfItReleasesMost) {
  script_.Alloc(kA, 512 * kMiB);
  script_.Block(kA, 512 * kMiB);
  script_.Alloc(kB, 512 * kMiB);
  script_.Block(kB, 512 * kMiB);
  script_.FreeBlock(kB);
  EXPECT_THAT(Text(), HasSubstr("; empty_cache() frees 512 MiB\n"));
}

TEST_F(FragTextTest, WithoutSegmentsItSaysSo) {
  script_.Alloc(kA, 2 * kMiB);
  EXPECT_THAT(Text(), StartsWith("Nothing is fragmented: no allocator that keeps segments was"));
  EXPECT_EQ(Json()["free_bytes"], 0);
}

TEST_F(FragTextTest, FullSegmentsHaveNothingToSplit) {
  script_.Alloc(kA, 2 * kMiB);
  script_.Block(kA, 2 * kMiB);
  EXPECT_THAT(Text(), HasSubstr("all of it is in live blocks"));
}

TEST_F(FragTextTest, LongListsOfPinsAreSummedUp) {
  for (uint64_t i = 0; i < 30; ++i) {
    script_.Alloc(kA + i * 1024 * kMiB, 512 * kMiB);
    script_.Block(kA + i * 1024 * kMiB, 2 * kMiB, {"site" + std::to_string(i)});
  }
  EXPECT_THAT(Text(), HasSubstr("27 other stacks"));
}

TEST_F(FragTextTest, JsonAddsUpAndHasEverySegment) {
  PinnedSegments(4);
  const nlohmann::json json = Json();
  EXPECT_EQ(json["schema"], "gpumemtrace.frag/1");
  uint64_t sum = 0;
  for (const auto& [name, bytes] : json["split"].items()) sum += bytes.get<uint64_t>();
  EXPECT_EQ(json["free_bytes"], sum);
  EXPECT_EQ(sum, json["reserved_bytes"].get<uint64_t>() - json["allocated_bytes"].get<uint64_t>());
  EXPECT_EQ(json["rounding_bytes"], nullptr);
  ASSERT_EQ(json["segments"].size(), 4);
  uint64_t free = 0;
  for (const auto& segment : json["segments"]) free += segment["free_bytes"].get<uint64_t>();
  EXPECT_EQ(json["free_bytes"], free);
  EXPECT_EQ(json["pins"][0]["pinned_bytes"], json["split"]["pinned"]);
  ASSERT_EQ(json["devices"].size(), 1);
  const auto& last = json["devices"][0]["history"].back();
  for (const char* key : {"reserved_bytes", "allocated_bytes", "split"})
    EXPECT_EQ(last[key], json[key]);
}

}  // namespace
}  // namespace gmt::answers
