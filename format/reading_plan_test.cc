// Tests reading of a time range: what is skipped, and that nothing is missing from what is read.

#include "format/reading_plan.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/live_columns.h"
#include "format/testing/parts_fixture.h"
#include "format/testing/random_events.h"
#include "format/testing/recording_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

struct CollectedRange : Collected {
  absl::Status OnCheckpoint(const Checkpoint& checkpoint) override {
    EXPECT_THAT(events, IsEmpty());
    checkpoints.push_back(checkpoint);
    return absl::OkStatus();
  }
  std::vector<Checkpoint> checkpoints;
};

// The address and the size of what is held.
using Held = std::map<uint64_t, uint64_t>;

void Apply(const Event& event, Held* held) {
  if (event.kind == ALLOC) (*held)[event.address] = event.size;
  if (event.kind == FREE) held->erase(event.address);
}

class ReadingPlanTest : public RecordingFixture {
 protected:
  // Adds a checkpoint with what `held` says.
  void AddCheckpoint(const Held& held) {
    std::vector<Event> rows;
    for (const auto& [address, size] : held) rows.push_back(Alloc(address, size));
    Checkpoint checkpoint;
    checkpoint.mutable_held()->set_t_ns(now_ += 100);
    *checkpoint.mutable_held()->mutable_live() = EncodeLive(rows);
    checkpoint.mutable_so_far()->set_events(writer_->events_written());
    ASSERT_TRUE(writer_->Add(checkpoint).ok());
  }

  // Adds as many rounds of random allocations and frees, each of which ends with a checkpoint.
  void AddRounds(uint64_t seed, int rounds) {
    std::mt19937_64 random(seed);
    Held held;
    for (int round = 0; round < rounds; ++round) {
      round_began_.push_back(now_ + 100);
      for (int i = 0; i < 200; ++i) {
        const uint64_t address = 0x1000 + 0x1000 * (random() % 40);
        const Event event =
            held.contains(address) ? Free(address) : Alloc(address, 512 * (1 + random() % 9));
        Add(event);
        if (i % 50 == 0) Flush();
        Apply(event, &held);
      }
      AddCheckpoint(held);
    }
  }

  CollectedRange ReadRange(const std::string& bytes, const TimeRange& range) {
    CollectedRange collected;
    auto reader = RecordingReader::FromBytes(bytes, "test.gmt");
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return collected;
    reader_ = *std::move(reader);
    EXPECT_TRUE(reader_->ReadRange(collected, range).ok());
    return collected;
  }

  void CheckRanges(uint32_t seed);

  std::vector<int64_t> round_began_;
};

TEST_F(ReadingPlanTest, EventsAfterACheckpointAreCompleteWithoutThoseBeforeIt) {
  ForEachSeed(SeedsUpTo(50), [&](uint32_t seed) {
    bytes_.clear();
    StartRecording();
    uint32_t max_id = 0;
    while (max_id < 40) max_id = writer_->definitions().InternString(std::to_string(max_id));
    RandomEvents events(seed);
    for (int i = 0; i < 60; ++i) {
      EventBatch batch;
      for (int j = 0; j < 20; ++j) events.AddTo(&batch, max_id);
      ASSERT_TRUE(writer_->Add(batch).ok());
      if (i % 7 == 3) AddCheckpoint({{0x1000, 512}});
    }
    Finish();
    const std::vector<Event> all = Read(bytes_).events;
    EXPECT_TRUE(reader_->complete());
    const std::vector<Event> some = ReadRange(bytes_, {INT64_MAX, INT64_MAX}).events;
    EXPECT_TRUE(reader_->complete());
    ASSERT_EQ(all.size(), 60 * 20u);
    ASSERT_EQ(some.size(), (60 - 46) * 20u);  // after the last but one that has events after it
    for (size_t i = 0; i < some.size(); ++i) {
      Event expected = all[all.size() - some.size() + i];
      expected.detail = some[i].detail;  // where a batch keeps the rest
      ASSERT_EQ(some[i], expected);
    }
  });
}

void ReadingPlanTest::CheckRanges(uint32_t seed) {
  bytes_.clear();
  round_began_.clear();
  now_ = 0;
  StartRecording();
  AddRounds(seed, 12);
  Finish();
  const std::vector<Event> all = Read(bytes_).events;
  for (size_t round = 0; round < round_began_.size(); ++round) {
    const TimeRange range = {round_began_[round] + 5, round_began_[round] + 900};
    const CollectedRange some = ReadRange(bytes_, range);
    EXPECT_TRUE(reader_->complete());
    ASSERT_FALSE(some.events.empty());
    EXPECT_LE(some.events.size(), 5 * 200u);
    EXPECT_LE(some.events.front().t_ns, range.from_ns);
    EXPECT_GE(some.events.back().t_ns, range.to_ns);

    // What was skipped, the checkpoint and the events after it agree with the whole recording.
    size_t skipped = 0;
    while (all[skipped].t_ns != some.events.front().t_ns) ++skipped;
    EXPECT_EQ(some.checkpoints.size(), skipped == 0 ? 0u : 1u);
    Held held, expected;
    for (size_t i = 0; i < skipped; ++i) Apply(all[i], &expected);
    for (const Checkpoint& checkpoint : some.checkpoints) {
      EXPECT_EQ(checkpoint.so_far().events(), skipped);
      const auto rows = DecodeLive(checkpoint.held().live());
      ASSERT_TRUE(rows.ok());
      for (const Event& row : *rows) Apply(row, &held);
    }
    EXPECT_EQ(held, expected);
    for (size_t i = 0; i < some.events.size(); ++i) ASSERT_EQ(some.events[i], all[skipped + i]);
  }
}

TEST_F(ReadingPlanTest, RangeHasItsEventsAndWhatWasHeldBeforeThem) {
  ForEachSeed(SeedsUpTo(5), [&](uint32_t seed) { CheckRanges(seed); });
}

TEST_F(ReadingPlanTest, EndNeedsTheLastEventsOnly) {
  StartRecording();
  AddRounds(1, 12);
  Facts facts;
  facts.set_pid(4711);
  ASSERT_TRUE(writer_->Add(facts).ok());
  Finish();
  const CollectedRange some = ReadRange(bytes_, {INT64_MAX, INT64_MAX});
  EXPECT_THAT(some.checkpoints, SizeIs(1));
  EXPECT_THAT(some.events, SizeIs(2 * 200));
  EXPECT_THAT(some.facts, SizeIs(1));
}

TEST_F(ReadingPlanTest, RecordingWithoutItsEndHasRanges) {
  StartRecording();
  AddRounds(1, 12);
  Flush();
  const CollectedRange some =
      ReadRange(bytes_.substr(0, bytes_.size() - 10), {INT64_MAX, INT64_MAX});
  EXPECT_THAT(some.checkpoints, SizeIs(1));
  EXPECT_FALSE(reader_->complete());
  EXPECT_THAT(reader_->damage(), IsEmpty());
}

TEST_F(ReadingPlanTest, WithoutCheckpointsEverythingIsRead) {
  const std::string bytes = SmallRecording(10);
  EXPECT_THAT(ReadRange(bytes, {INT64_MAX, INT64_MAX}).events, SizeIs(20));
}

TEST_F(ReadingPlanTest, JoinedRecordingsAreReadWhole) {
  StartRecording();
  AddRounds(1, 6);
  Finish();
  EXPECT_THAT(ReadRange(bytes_ + bytes_, {INT64_MAX, INT64_MAX}).events, SizeIs(2 * 6 * 200));
}

TEST_F(ReadingPlanTest, AMissingChunkMakesTheReaderReadEverything) {
  StartRecording();
  AddRounds(1, 12);
  Finish();
  const size_t begin = SizeAfterWrites(4), size = writes_[4];
  const std::string without = bytes_.substr(0, begin) + bytes_.substr(begin + size);
  const CollectedRange some = ReadRange(without, {INT64_MAX, INT64_MAX});
  EXPECT_THAT(some.checkpoints, IsEmpty());
  EXPECT_GT(some.events.size(), 10 * 200u);
  EXPECT_THAT(reader_->damage(), SizeIs(1));
}

TEST_F(ReadingPlanTest, ADamagedCheckpointMakesTheReaderReadEverything) {
  StartRecording();
  AddRounds(1, 3);
  const size_t end = bytes_.size();
  AddRounds(2, 1);
  Add(Alloc(0x1000, 512));
  Finish();
  std::string damaged = bytes_;
  damaged[end - 10] = static_cast<char>(damaged[end - 10] ^ 1);  // in the last checkpoint but one
  const CollectedRange some = ReadRange(damaged, {INT64_MAX, INT64_MAX});
  EXPECT_THAT(some.checkpoints, IsEmpty());
  EXPECT_GE(some.events.size(), 4 * 200u);
  EXPECT_THAT(reader_->damage(), SizeIs(1));
}

TEST_F(ReadingPlanTest, DamagedHeadsNeverStopTheReader) {
  StartRecording();
  AddRounds(1, 4);
  Finish();
  for (size_t at = 0; at < SizeAfterWrites(3); ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Collected collected;
    auto reader = RecordingReader::FromBytes(damaged, "test.gmt");
    if (!reader.ok()) continue;
    EXPECT_TRUE((*reader)->ReadRange(collected, {INT64_MAX, INT64_MAX}).ok()) << at;
  }
}

TEST_F(ReadingPlanTest, SnapshotsAfterACheckpointNeedNoneBeforeIt) {
  StartRecording();
  Snapshot first;
  first.set_name("first");
  std::vector<Event> rows;
  for (uint64_t i = 0; i < 20; ++i) rows.push_back(Alloc(0x1000 * (i + 1), 512));
  *first.mutable_live() = EncodeLive(rows);
  Snapshot last = first;
  last.set_name("last");
  ASSERT_TRUE(writer_->Add(first).ok());
  AddRounds(1, 3);
  now_ += 100;
  last.set_t_ns(now_);
  ASSERT_TRUE(writer_->Add(last).ok());
  Finish();
  const CollectedRange some = ReadRange(bytes_, {INT64_MAX, INT64_MAX});
  ASSERT_THAT(some.snapshots, SizeIs(1));
  EXPECT_EQ(some.snapshots[0].name(), "last");
  EXPECT_THAT(DecodeLive(some.snapshots[0].live()).value(), SizeIs(20));
  EXPECT_THAT(reader_->damage(), IsEmpty());
}

TEST_F(ReadingPlanTest, SumsOfAllCheckpointsAreKnownIfNoEventsFollowTheLastOne) {
  StartRecording();
  AddRounds(3, 6);
  const std::string without_end = bytes_;
  const auto sums = ReadCheckpointSums(*BytesInMemory(without_end));
  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_THAT(*sums, SizeIs(6));
  for (size_t i = 0; i < sums->size(); ++i) EXPECT_EQ((*sums)[i]->events(), 200 * (i + 1));
  Add(Alloc(0x1000, 512));
  Finish();
  EXPECT_THAT(ReadCheckpointSums(*BytesInMemory(bytes_)).value(), IsEmpty());
  EXPECT_THAT(ReadCheckpointSums(*BytesInMemory(without_end + without_end)).value(), IsEmpty());
  std::string damaged = without_end;
  damaged[damaged.size() - 10] = static_cast<char>(damaged[damaged.size() - 10] ^ 1);
  EXPECT_THAT(ReadCheckpointSums(*BytesInMemory(damaged)).value(), IsEmpty());
}

TEST_F(ReadingPlanTest, TheLastCheckpointIsNoBeginningIfNoEventsFollowIt) {
  StartRecording();
  AddRounds(3, 6);
  Finish();
  EXPECT_THAT(ReadRange(bytes_, {INT64_MAX, INT64_MAX}).events, SizeIs(2 * 200));
}

TEST_F(ReadingPlanTest, WriterWantsNoCheckpointBeforeManyEvents) {
  StartRecording();
  EXPECT_FALSE(writer_->WantsCheckpoint(0));
  const Event event = Alloc(0x1000, 512);
  for (int i = 0; i < 500'000; ++i) Add(event);
  EXPECT_TRUE(writer_->WantsCheckpoint(0));
  EXPECT_FALSE(writer_->WantsCheckpoint(100'000));
  AddCheckpoint({{0x1000, 512}});
  EXPECT_FALSE(writer_->WantsCheckpoint(0));
}

}  // namespace
}  // namespace gmt::format
