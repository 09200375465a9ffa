#include "format/event_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "format/definitions_builder.h"
#include "format/repair.h"
#include "format/testing/older_recording.h"
#include "format/testing/random_events.h"
#include "format/testing/recording_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What a recording holds, with its events as numbers; the same from events and from counts.
struct Holds : RecordingVisitor {
  absl::Status OnHeader(const Header& header) override { return Note(header); }
  absl::Status OnSnapshot(const Snapshot& snapshot) override { return Note(snapshot); }
  absl::Status OnFacts(const Facts& facts) override { return Note(facts); }
  absl::Status OnLosses(const Losses& losses) override { return Note(losses); }
  absl::Status OnAggregates(const Aggregates& aggregates) override { return Note(aggregates); }
  absl::Status OnEvents(const EventBatch& batch) override {
    for (const Event& event : batch.events) {
      const Family family = FamilyOf(event.kind);
      const bool has_heap = family == Family::kAcquisition || family == Family::kReturn;
      events[{event.kind, has_heap ? event.heap : 0, has_heap ? event.result : 0}] += 1;
      last_t_ns = std::max(last_t_ns, event.t_ns);
    }
    return absl::OkStatus();
  }
  bool OnEventCounts(const std::vector<EventCount>& counts, int64_t t_ns) override {
    for (const EventCount& row : counts) events[{row.kind, row.heap, row.result}] += row.count;
    last_t_ns = std::max(last_t_ns, t_ns);
    return !declines;
  }

  bool operator==(const Holds& other) const {
    return events == other.events && last_t_ns == other.last_t_ns && rest == other.rest;
  }

  std::map<std::tuple<Kind, uint32_t, uint32_t>, uint64_t> events;
  int64_t last_t_ns = INT64_MIN;
  std::vector<std::string> rest;  // in order
  bool declines = false;

 private:
  absl::Status Note(const google::protobuf::MessageLite& message) {
    rest.push_back(message.SerializeAsString());
    return absl::OkStatus();
  }
};

class EventCountsTest : public RecordingFixture {
 protected:
  // Reads `bytes` by counts and in full, and compares. Returns whether counting was possible.
  bool Compare(const std::string& bytes) {
    auto counting = RecordingReader::FromBytes(bytes, "test.gmt");
    if (!counting.ok()) return false;
    Holds counted;
    const absl::StatusOr<bool> is_whole = (*counting)->ReadCounts(counted);
    EXPECT_TRUE(is_whole.ok()) << is_whole.status();
    if (!*is_whole) return false;
    Holds read;
    auto reading = RecordingReader::FromBytes(bytes, "test.gmt");
    EXPECT_TRUE((*reading)->Read(read).ok());
    EXPECT_TRUE(counted == read);
    EXPECT_EQ((*counting)->complete(), (*reading)->complete());
    EXPECT_EQ((*counting)->damage().size(), (*reading)->damage().size());
    EXPECT_EQ((*counting)->chunks(), (*reading)->chunks());
    EXPECT_EQ((*counting)->definitions().string(1), (*reading)->definitions().string(1));
    return true;
  }
};

TEST_F(EventCountsTest, CountsEqualTheEventsOfAnyRecording) {
  ForEachSeed(SeedsUpTo(8), [&](uint32_t seed) {
    bytes_.clear();
    RandomEvents random(seed);
    // Segments are joined, so that ids of the later ones are shifted.
    for (int segment = 0; segment < 3; ++segment) {
      WriterOptions options;
      options.chunk_events = 1 + seed % 7 * 9;
      StartRecording(options);
      for (int text = 0; text < 9; ++text)
        writer_->definitions().InternString("text " + std::to_string(text));
      for (int batch = 0; batch < 5; ++batch) {
        EventBatch events;
        for (int event = 0; event < 100; ++event) random.AddTo(&events, 9);
        ASSERT_TRUE(writer_->Add(events).ok());
        Facts facts;
        facts.set_pid(static_cast<uint64_t>(batch));
        ASSERT_TRUE(writer_->Add(facts).ok());
      }
      Finish();
    }
    EXPECT_TRUE(Compare(bytes_));
    EXPECT_TRUE(Compare(bytes_.substr(0, bytes_.size() / 2)));
  });
}

TEST_F(EventCountsTest, RecordingWithoutEventsCanBeCounted) {
  StartRecording();
  Finish();
  EXPECT_TRUE(Compare(bytes_));
}

TEST_F(EventCountsTest, EveryTruncationIsCountedLikeItIsRead) {
  const std::string whole = SmallRecording(6);
  int counted = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    if (Compare(whole.substr(0, size))) ++counted;
  }
  EXPECT_GT(counted, 6);
  EXPECT_TRUE(Compare(whole.substr(0, SizeAfterWrites(3)) + std::string(100, '\0')));
}

TEST_F(EventCountsTest, NoFlippedBitIsCountedWrongly) {
  const std::string whole = SmallRecording(3);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    EXPECT_FALSE(Compare(flipped)) << "byte " << at;
  }
}

TEST_F(EventCountsTest, MissingChunkNeedsTheEvents) {
  const std::string whole = SmallRecording(4);
  const size_t from = SizeAfterWrites(3), to = SizeAfterWrites(4);
  EXPECT_FALSE(Compare(whole.substr(0, from) + whole.substr(to)));
}

TEST_F(EventCountsTest, ChunksOfAnOlderWriterNeedTheEvents) {
  const std::string older = WithoutCounts(SmallRecording(4));
  EXPECT_EQ(Read(older).events.size(), 8u);
  EXPECT_TRUE(reader_->complete());
  EXPECT_FALSE(Compare(older));
}

TEST_F(EventCountsTest, FreeWithoutAHeapCountsForThatOfItsAllocation) {
  StartRecording();
  const Event alloc = Alloc(0x1000, 512);
  Add(alloc);
  Event free = Free(0x1000);
  free.kind = FREE_DONE;
  free.heap = 0;
  Add(free);
  Finish();
  EXPECT_TRUE(Compare(bytes_));
}

TEST_F(EventCountsTest, VisitorMayDecline) {
  auto reader = RecordingReader::FromBytes(SmallRecording(4), "test.gmt");
  Holds holds;
  holds.declines = true;
  EXPECT_EQ(*(*reader)->ReadCounts(holds), false);
  EXPECT_EQ(holds.events.size(), 2u) << "the first chunk was delivered, nothing after it";
  EXPECT_FALSE((*reader)->ReadCounts(holds).ok()) << "a recording is read once";
}

TEST_F(EventCountsTest, RepairedGapNeedsTheEvents) {
  const std::string whole = SmallRecording(4);
  const auto repair = [](const std::string& bytes) {
    std::string repaired;
    EXPECT_TRUE(RepairBytes(bytes, "test.gmt", std::make_unique<StringSink>(&repaired)).ok());
    return repaired;
  };
  EXPECT_TRUE(Compare(repair(whole.substr(0, whole.size() - 1)))) << "only the end was lost";
  // The allocation of chunk 2 is lost, so the reader does not know the heap of its free.
  EXPECT_FALSE(
      Compare(repair(whole.substr(0, SizeAfterWrites(3)) + whole.substr(SizeAfterWrites(4)))));
}

TEST(EventCounter, TooManyRowsAreNotStored) {
  EventCounter counter;
  for (uint32_t row = 0; row < EventCounter::kMaxRows; ++row) counter.Add(ALLOC, row, 0);
  counter.Add(ALLOC, 0, 0);
  gmt::EventCounts counts;
  counter.Store(&counts);
  EXPECT_EQ(DecodeCounts(counts).size(), EventCounter::kMaxRows);
  EXPECT_EQ(DecodeCounts(counts)[0].count, 2u);

  counter.Add(FREE, 0, 0);
  gmt::EventCounts none;
  counter.Store(&none);
  EXPECT_THAT(DecodeCounts(none), IsEmpty());
}

TEST(EventCounter, ShortColumnsRepeatTheirLastValue) {
  gmt::EventCounts counts;
  counts.add_kind(gmt::Events::FREE);
  counts.add_heap(7);
  for (const uint64_t count : {5, 6}) counts.add_count(count);
  EXPECT_THAT(DecodeCounts(counts),
              ElementsAre(EventCount{FREE, 7, 0, 5}, EventCount{FREE, 7, 0, 6}));
}

}  // namespace
}  // namespace gmt::format
