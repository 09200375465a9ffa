// Tests that a report for which only a part of the recording is read has the same rows and sums as
// one that reads everything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/examination/instant.h"
#include "answers/report/report_answer.h"
#include "format/allocator_trace.h"
#include "format/definitions_builder.h"
#include "format/recording_writer.h"
#include "format/testing/held_events.h"
#include "proto/gmt.pb.h"
#include "tests/seeds/seeds.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRounds = 12, kEventsOfRound = 5000;

class ReportOfRangeTest : public ::testing::Test {
 protected:
  ReportOfRangeTest() {
    // A name of its own, because tests run at the same time.
    path_ = ::testing::TempDir() + "report_of_range." +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".gmt";
    Write(7);
  }
  ~ReportOfRangeTest() override { std::filesystem::remove(path_); }

  // `loose`: the checkpoint whose bound is much too high; -1: none. `twice`: it is there twice.
  void Write(uint64_t seed, int loose = -1, bool twice = false) {
    auto sink = format::FileSink(path_, format::IfExists::kOverwrite);
    Header header;
    header.set_tool_version("test");
    auto writer = format::RecordingWriter::Create(*std::move(sink), header, {});
    format::DefinitionsBuilder& definitions = (*writer)->definitions();
    const uint32_t driver = definitions.InternString("driver");
    const uint32_t pytorch = definitions.InternString("pytorch");
    const uint32_t host = definitions.InternString("host");
    std::vector<uint32_t> stacks = {0};
    for (uint32_t stack = 1; stack <= format::AllocatorTrace::kStacks; ++stack) {
      format::FrameInfo frame;
      frame.function = definitions.InternString("function_" + std::to_string(stack % 20));
      frame.language = format::Language::kPython;
      frame.flags = format::kFrameHasFunction;
      stacks.push_back(definitions.InternStack({definitions.InternFrame(frame)}, 0));
    }
    format::HeldEvents held({{driver, "driver"}, {pytorch, "pytorch"}, {host, "host"}});
    format::AllocatorTrace trace(seed);
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kEventsOfRound; ++i) {
        format::Event event = trace.Next();
        event.heap = event.memory == BLOCK ? pytorch : driver;
        event.stack = stacks[event.stack];
        EXPECT_TRUE((*writer)->Add(event).ok());
        held.Apply(event);
        t_ns_ = event.t_ns;
      }
      if (round == kRounds - 1) {
        format::Event pinned;
        pinned.kind = ALLOC;
        pinned.memory = PINNED;
        pinned.heap = host;
        pinned.present = format::kHasTime | format::kHasAddress | format::kHasSize;
        pinned.t_ns = t_ns_ + 1;
        pinned.address = 0x1000;
        pinned.size = 4096;
        EXPECT_TRUE((*writer)->Add(pinned).ok());
        held.Apply(pinned);
      }
      Checkpoint checkpoint = held.MakeCheckpoint();
      if (round == loose)
        checkpoint.mutable_so_far()->mutable_heaps(0)->set_allocated_at_most(uint64_t{1} << 50);
      EXPECT_TRUE((*writer)->Add(checkpoint).ok());
      if (twice && round == loose) {
        EXPECT_TRUE((*writer)->Add(checkpoint).ok());
      }
    }
    EXPECT_TRUE((*writer)->Finish().ok());
  }

  ReportAnswer Report(const analysis::ReportOptions& selection,
                      std::optional<format::TimeRange> range, std::optional<int32_t> device = {}) {
    ReadOptions options;
    options.range = range;
    options.device = device;
    options.min_events_to_skip = 1;
    auto recording = LoadRecording(path_, nullptr, options);
    EXPECT_TRUE(recording.ok()) << recording.status();
    recordings_.push_back(*std::move(recording));
    return ReportAnswer::Make(*recordings_.back(), selection).value();
  }

  static void ExpectSameRows(const analysis::Report& some, const analysis::Report& all) {
    ASSERT_EQ(some.rows.size(), all.rows.size());
    for (size_t i = 0; i < all.rows.size(); ++i) {
      EXPECT_EQ(some.rows[i].id, all.rows[i].id);
      EXPECT_EQ(some.rows[i].bytes, all.rows[i].bytes);
      EXPECT_EQ(some.rows[i].count, all.rows[i].count);
    }
  }

  static void ExpectSameDevice(const analysis::ReportDevice& some,
                               const analysis::ReportDevice& all) {
    EXPECT_EQ(some.bytes, all.bytes);
    EXPECT_EQ(some.at.t_ns, all.at.t_ns);
    EXPECT_EQ(some.peak_bytes, all.peak_bytes);
    EXPECT_EQ(some.peak_allocated_bytes, all.peak_allocated_bytes);
    ASSERT_EQ(some.heaps.size(), all.heaps.size());
    for (size_t i = 0; i < all.heaps.size(); ++i) {
      const analysis::ReportHeap &a = some.heaps[i], &b = all.heaps[i];
      EXPECT_EQ(a.heap, b.heap);
      EXPECT_EQ(a.allocations, b.allocations);
      EXPECT_EQ(a.frees, b.frees);
      EXPECT_EQ(a.live_bytes, b.live_bytes);
      EXPECT_EQ(a.peak_live_bytes, b.peak_live_bytes);
      EXPECT_EQ(a.reserved_bytes, b.reserved_bytes);
      EXPECT_EQ(a.rounding_bytes, b.rounding_bytes);
    }
  }

  std::string path_;
  int64_t t_ns_ = 0;  // the time of the last event
  std::vector<std::unique_ptr<Recording>> recordings_;
};

TEST_F(ReportOfRangeTest, RowsPeaksAndCountsOfTheRangeAreTheSame) {
  for (int64_t part = 0; part < 10; ++part) {
    analysis::ReportOptions selection;
    selection.window = {part * t_ns_ / 10, (part + 1) * t_ns_ / 10};
    const ReportAnswer all = Report(selection, std::nullopt);
    const ReportAnswer some =
        Report(selection, format::TimeRange{selection.window.from_ns, selection.window.to_ns});
    EXPECT_LT(recordings_.back()->trace().steps.size(), kRounds * kEventsOfRound / 2u);
    EXPECT_THAT(some.Text({}), HasSubstr("were not read"));
    EXPECT_THAT(all.Text({}), Not(HasSubstr("were not read")));
    EXPECT_THAT(some.Text({}), Not(HasSubstr("Since the start")));
    ExpectSameRows(some.report(), all.report());
    ASSERT_EQ(some.report().devices.size(), all.report().devices.size());
    for (size_t i = 0; i < all.report().devices.size(); ++i)
      ExpectSameDevice(some.report().devices[i], all.report().devices[i]);
  }
}

TEST_F(ReportOfRangeTest, TheEndHasTheSameRowsAndTheSumsSinceTheStart) {
  analysis::ReportOptions selection;
  selection.at = analysis::ParseAt("end").value();
  const ReportAnswer all = Report(selection, std::nullopt), some = Report(selection, kTheEnd);
  EXPECT_LE(recordings_.back()->trace().steps.size(), 2u * kEventsOfRound + 1);
  ExpectSameRows(some.report(), all.report());
  ASSERT_TRUE(some.report().all_time.has_value());
  ASSERT_FALSE(all.report().all_time.has_value());
  for (const analysis::AllTimeHeap& heap : some.report().all_time->heaps) {
    for (const analysis::ReportHeap& known : all.report().devices[0].heaps) {
      if (known.heap != heap.heap) continue;
      EXPECT_EQ(heap.allocations, known.allocations);
      EXPECT_EQ(heap.frees, known.frees);
      EXPECT_EQ(heap.peak_bytes, known.peak_live_bytes);
      EXPECT_EQ(heap.peak_t_ns, known.peak_live_t_ns);
    }
  }
}

TEST_F(ReportOfRangeTest, ThePeakIsThatOfTheWholeRecording) {
  uint64_t parts = 0;
  ForEachSeed(SeedsUpTo(12), [&](uint32_t seed) {
    Write(seed, static_cast<int>(seed % 4) - 1);
    const ReportAnswer all = Report({}, std::nullopt);
    analysis::ReportOptions selection;
    selection.without = {analysis::kHostDevice};
    ReportAnswer some = Report(selection, kThePeak);
    parts += recordings_.back()->sums() != nullptr ? 1 : 0;
    const std::set<int32_t> elsewhere = recordings_.back()->peaks_elsewhere();
    EXPECT_TRUE(elsewhere.empty() || elsewhere == selection.without);
    selection = {};
    selection.device = analysis::kHostDevice;
    some.Add(Report(selection, kThePeak, selection.device));
    ExpectSameRows(some.report(), all.report());
    ASSERT_EQ(some.report().devices.size(), all.report().devices.size());
    for (size_t i = 0; i < all.report().devices.size(); ++i)
      ExpectSameDevice(some.report().devices[i], all.report().devices[i]);
    const std::string text = all.Text({});
    EXPECT_EQ(some.Text({}).substr(0, text.find('\n')), text.substr(0, text.find('\n')));
    recordings_.clear();
  });
  EXPECT_GE(parts, 3u);
}

TEST_F(ReportOfRangeTest, TwoCheckpointsAtTheSameTimeDoNotKeepTheSearchFromEnding) {
  for (int at = 0; at < kRounds; ++at) {
    Write(7, at, /*twice=*/true);
    const ReportAnswer all = Report({}, std::nullopt);
    analysis::ReportOptions selection;
    selection.without = {analysis::kHostDevice};
    const ReportAnswer some = Report(selection, kThePeak);
    EXPECT_EQ(some.report().devices[0].peak_allocated_bytes,
              all.report().devices[0].peak_allocated_bytes);
    recordings_.clear();
  }
}

TEST_F(ReportOfRangeTest, ThePeakOfAShortRecordingIsFoundByReadingEverything) {
  ReadOptions options;
  options.range = kThePeak;
  const auto recording = LoadRecording(path_, nullptr, options);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ((*recording)->sums(), nullptr);
  EXPECT_EQ((*recording)->trace().steps.size(), kRounds * kEventsOfRound + 1u);
}

}  // namespace
}  // namespace gmt::answers
