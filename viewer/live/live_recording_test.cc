#include "viewer/live/live_recording.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "viewer/testing/live_fixture.h"

namespace gmt::viewer {
namespace {

TEST_F(LiveRecordingTest, EachGenerationContainsWhatWasWrittenByThen) {
  Record();
  Follow();
  for (uint64_t n = 1; n <= 5; ++n) {
    Alloc(0x1000 * n, 256);
    Flush();
    WaitForEvents(n);
    const auto meta = live_->meta();
    EXPECT_EQ(meta["lanes"][0]["end_bytes"], 256 * n);
    EXPECT_EQ(meta["live"]["window"], 0);
    const auto progress = live_->progress();
    EXPECT_EQ(progress["state"], "ready");
    EXPECT_EQ(progress["live"]["state"], "following");
    EXPECT_GE(progress["live"]["generation"], n);
    EXPECT_EQ(progress["live"]["heaps"][0]["live_bytes"], 256 * n);
  }
}

TEST_F(LiveRecordingTest, TextOfTheProcessIsPrintable) {
  heap_ = "\x1b[2J\u202eheap";
  Record();
  Follow();
  Alloc(0x1000, 256);
  Flush();
  WaitForEvents(1);
  Say(LiveNews::State::kLost, "\x1b[2Jgone");
  WaitFor([&] { return live_->progress()["live"]["state"] == "lost"; });
  const auto progress = live_->progress();
  EXPECT_EQ(progress["live"]["words"], "\\x1b[2Jgone");
  EXPECT_EQ(progress["live"]["heaps"][0]["heap"], "\\x1b[2J\\u202eheap");
  EXPECT_EQ(live_->meta()["lanes"][0]["heap"], "\\x1b[2J\\u202eheap");
}

TEST_F(LiveRecordingTest, RecordingWithoutAllocationsHasNoLanes) {
  Record();
  Follow();
  WaitFor([&] { return live_->progress()["state"] == "ready"; });
  EXPECT_TRUE(live_->meta()["lanes"].empty());
  EXPECT_EQ(live_->meta()["live"]["generation"], 1);
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
}

TEST_F(LiveRecordingTest, WithoutNewsThereIsNoNewGeneration) {
  Record();
  Follow();
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
  const auto generation = live_->meta()["live"]["generation"];
  for (int i = 0; i < 5; ++i) Flush();
  now_ += 100'000'000;
  Say(LiveNews::State::kFollowing);
  WaitFor([&] { return live_->progress()["live"]["now_ns"] == now_; });
  EXPECT_EQ(live_->meta()["live"]["generation"], generation);
  EXPECT_EQ(live_->progress()["live"]["age_ns"], 0) << "nothing is old if nothing happens";
}

TEST_F(LiveRecordingTest, PassingTimeGivesTheLatestBlockAWidth) {
  Record();
  Follow();
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
  now_ += 60'000'000'000;
  Say(LiveNews::State::kFollowing);
  WaitFor([&] { return live_->meta()["end_ns"] == now_; });
  EXPECT_EQ(live_->meta()["events"], 1);
}

TEST_F(LiveRecordingTest, QueriesAreAnsweredByTheWindowTheyReferTo) {
  Record();
  Follow(/*window_rows=*/40);
  Alloc(0x7000, 4096);
  Flush();
  WaitForEvents(1);
  uint64_t written = 1;
  for (uint64_t n = 0; n < 29; ++n, written += 2) {
    Alloc(0x10000, 64);
    Free(0x10000);
    if (n % 5 == 0) Flush();
  }
  Flush();
  WaitForEvents(written);
  for (uint64_t n = 0; n < 20; ++n) {
    Alloc(0x10000, 64);
    Free(0x10000);
  }
  Flush();
  WaitFor([&] { return live_->meta()["live"]["window"] == 1; });
  const auto meta = live_->meta();
  EXPECT_GT(meta["live"]["dropped_events"], 0);
  EXPECT_GT(meta["live"]["begin_ns"], 0);
  EXPECT_EQ(
      static_cast<uint64_t>(meta["events"]) + static_cast<uint64_t>(meta["live"]["dropped_events"]),
      written + 40);
  // A block that is held all the time, and one that is gone.
  EXPECT_EQ(live_->RowIn(1, 0, 0), 0u);
  EXPECT_EQ(live_->RowIn(1, 0, 1), analysis::kNoRow);
  EXPECT_EQ(live_->RowIn(0, 0, 1), 1u) << "a query about a window that is not the newest";
  EXPECT_EQ(live_->Current(0)->meta()["events"], written);
  EXPECT_EQ(live_->Current(1)->meta()["events"], meta["events"]);
  EXPECT_EQ(live_->Current({})->meta()["events"], meta["events"]);
}

TEST_F(LiveRecordingTest, QueryAboutAnOldWindowIsRefused) {
  Record();
  Follow(/*window_rows=*/40);
  uint64_t written = 0;
  while (live_->meta()["live"]["window"] < 2) {
    for (int i = 0; i < 5; ++i, written += 2) {
      Alloc(0x10000, 64);
      Free(0x10000);
    }
    Flush();
    WaitFor([&] {
      const auto meta = live_->meta();
      return meta["events"].get<uint64_t>() + meta["live"]["dropped_events"].get<uint64_t>() ==
             written;
    });
  }
  ASSERT_EQ(live_->meta()["live"]["window"], 2);
  const auto ask = [](Questions&) { return absl::OkStatus(); };
  const absl::Status passed = live_->Current(0)->Ask(ask);
  EXPECT_EQ(
      passed.message(),
      "the query refers to a window of process 4711 that is no longer kept; a newer one is shown");
  EXPECT_EQ(live_->Current(0)->index(), nullptr);
  EXPECT_TRUE(live_->Current(1)->Ask(ask).ok());
  EXPECT_TRUE(live_->Current(2)->Ask(ask).ok());
  EXPECT_FALSE(live_->Current(17)->Ask(ask).ok());
}

TEST_F(LiveRecordingTest, EndIsReportedWithEverythingBeforeIt) {
  Record();
  Follow();
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
  Alloc(0x2000, 64);
  ASSERT_TRUE(writer_->Finish().ok());
  Say(LiveNews::State::kEnded, "process 4711 has ended");
  WaitForEvents(2);
  WaitFor([&] { return live_->progress()["live"]["state"] == "ended"; });
  EXPECT_EQ(live_->progress()["live"]["words"], "process 4711 has ended");
  EXPECT_EQ(live_->meta()["events"], 2) << "and it can still be queried";
}

TEST_F(LiveRecordingTest, ReportsLossOfTheCollectorAndRecovers) {
  Record();
  Follow();
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
  Say(LiveNews::State::kLost, "its collector is gone");
  WaitFor([&] { return live_->progress()["live"]["state"] == "lost"; });
  EXPECT_EQ(live_->progress()["live"]["words"], "its collector is gone");
  Alloc(0x2000, 64);
  Flush();
  WaitForEvents(2);
  EXPECT_EQ(live_->progress()["live"]["state"], "following");
}

TEST_F(LiveRecordingTest, WaitsForAFileThatDoesNotExistYet) {
  Follow();
  WaitFor([&] {
    return live_->progress()["what"].get<std::string>().find("run.gmt") != std::string::npos;
  });
  EXPECT_EQ(live_->progress()["state"], "loading");
  Record();
  Alloc(0x1000, 64);
  Flush();
  WaitForEvents(1);
}

TEST_F(LiveRecordingTest, RestartedRecordingIsAnotherWindow) {
  Record();
  Follow();
  Alloc(0x1000, 64);
  Alloc(0x2000, 64);
  Flush();
  WaitForEvents(2);
  ASSERT_TRUE(writer_->Finish().ok());
  std::filesystem::remove(Path());
  Record();
  Alloc(0x3000, 64);
  Flush();
  WaitForEvents(1);
  EXPECT_EQ(live_->meta()["live"]["window"], 1);
  EXPECT_EQ(live_->RowIn(1, 0, 0), analysis::kNoRow) << "no row is one of the old recording";
}

TEST_F(LiveRecordingTest, CanBeDestroyedWhileReading) {
  Record();
  for (uint64_t n = 0; n < 20'000; ++n) {
    Alloc(0x1000 * (n + 1), 64);
    ASSERT_TRUE(n % 100 != 0 || writer_->Flush().ok());
  }
  ASSERT_TRUE(writer_->Flush().ok());
  Follow();
  live_.reset();
}

}  // namespace
}  // namespace gmt::viewer
