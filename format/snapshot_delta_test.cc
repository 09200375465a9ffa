#include "format/snapshot_delta.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "format/definitions_builder.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/live_columns.h"
#include "format/repair.h"
#include "format/snapshot_copy.h"
#include "format/testing/random_events.h"
#include "format/testing/recording_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Event Block(uint64_t address, int64_t t_ns = 0) {
  Event event;
  event.kind = ALLOC;
  event.present = kHasTime | kHasAddress | kHasSize;
  event.t_ns = t_ns;
  event.memory = DEVICE;
  event.address = address;
  event.size = 512;
  return event;
}

std::vector<Event> Blocks(uint64_t first, uint64_t end) {
  std::vector<Event> blocks;
  for (uint64_t at = first; at < end; ++at) blocks.push_back(Block(at << 9));
  return blocks;
}

Snapshot Holding(const std::string& name, const std::vector<Event>& live) {
  Snapshot snapshot;
  snapshot.set_name(name);
  snapshot.set_reason("interval");
  snapshot.set_t_ns(17);
  snapshot.set_exact(true);
  snapshot.mutable_losses()->set_written(live.size());
  snapshot.add_samples()->set_used_bytes(4096);
  *snapshot.mutable_live() = EncodeLive(live);
  return snapshot;
}

std::string Bytes(const Snapshot& snapshot) { return snapshot.SerializeAsString(); }

// ---- Difference and Apply -----------------------------------------------------------------------

TEST(SnapshotDeltaTest, DeltaHasOnlyEndedAndNewRows) {
  SnapshotBase base;
  base.Set(Holding("a", Blocks(0, 6)));
  std::vector<Event> later = Blocks(0, 8);
  later.erase(later.begin() + 3);
  later.erase(later.begin() + 1);
  Snapshot snapshot = Holding("b", later);
  SnapshotDelta delta;
  ASSERT_TRUE(base.Difference(&snapshot, &delta));
  EXPECT_EQ(delta.base(), "a");
  EXPECT_THAT(delta.ended(), ElementsAre(1u, 2u));  // rows 1 and 3
  EXPECT_EQ(delta.snapshot().live().count(), 2u);
  const auto applied = base.Apply(delta);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(Bytes(*applied), Bytes(Holding("b", later)));
}

TEST(SnapshotDeltaTest, SnapshotIsCompleteIfThereIsNoBase) {
  Snapshot snapshot = Holding("a", Blocks(0, 6));
  SnapshotDelta delta;
  SnapshotBase base;
  EXPECT_FALSE(base.Difference(&snapshot, &delta));
  base.Set(Holding("a", Blocks(0, 6)));
  base.Clear();
  EXPECT_FALSE(base.Difference(&snapshot, &delta));
  EXPECT_EQ(Bytes(snapshot), Bytes(Holding("a", Blocks(0, 6))));
}

TEST(SnapshotDeltaTest, SnapshotIsCompleteIfMostOfItIsNew) {
  SnapshotBase base;
  base.Set(Holding("a", Blocks(0, 4)));
  Snapshot snapshot = Holding("b", Blocks(0, 9));
  SnapshotDelta delta;
  EXPECT_FALSE(base.Difference(&snapshot, &delta));
  EXPECT_EQ(Bytes(snapshot), Bytes(Holding("b", Blocks(0, 9))));
}

TEST(SnapshotDeltaTest, BlockThatChangedAtTheSameAddressIsAnotherRow) {
  SnapshotBase base;
  base.Set(Holding("a", Blocks(0, 6)));
  std::vector<Event> later = Blocks(0, 6);
  later.back().stack = 7;
  Snapshot snapshot = Holding("b", later);
  SnapshotDelta delta;
  ASSERT_TRUE(base.Difference(&snapshot, &delta));
  EXPECT_EQ(delta.snapshot().live().count(), 1u);
  EXPECT_EQ(Bytes(*base.Apply(delta)), Bytes(Holding("b", later)));
}

TEST(SnapshotDeltaTest, ChangedRolesDoNotMakeNewRows) {
  std::vector<Event> first = Blocks(0, 6);
  first[1].roles = first[4].roles = kRoleParameter;
  SnapshotBase base;
  base.Set(Holding("a", first));
  std::vector<Event> later = first;
  later[1].roles |= kRoleSaved;
  later[4].roles = 0;
  later[5].roles = kRoleGradient;
  later.erase(later.begin() + 2);
  Snapshot snapshot = Holding("b", later);
  SnapshotDelta delta;
  ASSERT_TRUE(base.Difference(&snapshot, &delta));
  EXPECT_THAT(delta.ended(), ElementsAre(2u));
  EXPECT_THAT(delta.changed(), ElementsAre(1u, 3u, 1u));  // rows 1, 4 and 5
  EXPECT_THAT(delta.changed_roles(), ElementsAre(kRoleParameter | kRoleSaved, 0u, kRoleGradient));
  EXPECT_EQ(delta.snapshot().live().count(), 0u);
  EXPECT_EQ(Bytes(*base.Apply(delta)), Bytes(Holding("b", later)));
}

TEST(SnapshotDeltaTest, LiveSetAboveTheRowLimitIsNotABase) {
  SnapshotBase base;
  base.Set(Holding("a", Blocks(0, SnapshotBase::kMaxRows + 1)));
  Snapshot snapshot = Holding("b", Blocks(0, 6));
  SnapshotDelta delta;
  EXPECT_FALSE(base.Difference(&snapshot, &delta));
}

TEST(SnapshotDeltaTest, RandomLiveSetsSurviveExactly) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937_64 random(seed);
    RandomEvents events(seed);
    SnapshotBase base;
    std::vector<Event> live;
    int deltas = 0;
    for (int round = 0; round < 300; ++round) {
      live.erase(
          std::remove_if(live.begin(), live.end(), [&](const Event&) { return random() % 9 == 0; }),
          live.end());
      for (Event& event : live) {
        if (random() % 9 == 0) event.roles = static_cast<uint32_t>(random() % 8);
      }
      EventBatch batch;
      for (uint64_t n = random() % 30; n > 0; --n) events.AddTo(&batch, 5);
      live.insert(live.end(), batch.events.begin(), batch.events.end());
      const std::string name = std::to_string(round);
      Snapshot snapshot = Holding(name, live);
      SnapshotDelta delta;
      if (!base.Difference(&snapshot, &delta)) {
        base.Set(snapshot);
        continue;
      }
      ++deltas;
      const auto applied = base.Apply(delta);
      ASSERT_TRUE(applied.ok()) << applied.status();
      ASSERT_EQ(Bytes(*applied), Bytes(Holding(name, live)));
    }
    EXPECT_GT(deltas, 30);
  });
}

// ---- Malicious deltas ---------------------------------------------------------------------------

class HostileDeltaTest : public testing::Test {
 protected:
  HostileDeltaTest() {
    base_.Set(Holding("a", Blocks(0, 6)));
    delta_.set_base("a");
    delta_.mutable_snapshot()->set_name("b");
  }
  std::string Refusal() {
    const auto applied = base_.Apply(delta_);
    return applied.ok() ? "" : std::string(applied.status().message());
  }
  SnapshotBase base_;
  SnapshotDelta delta_;
};

TEST_F(HostileDeltaTest, DeltaOfAnotherBaseIsRejected) {
  delta_.set_base("z");
  EXPECT_EQ(Refusal(), "the snapshot b is based on z, which is lost");
}

TEST_F(HostileDeltaTest, DeltaThatEndsMissingRowsIsRejected) {
  delta_.add_ended(6);
  EXPECT_EQ(Refusal(), "the snapshot b does not match a, its base");
}

TEST_F(HostileDeltaTest, DeltaThatEndsARowTwiceIsRejected) {
  delta_.add_ended(2);
  delta_.add_ended(0);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

TEST_F(HostileDeltaTest, DeltaWhoseDifferencesOverflowIsRejected) {
  delta_.add_ended(1);
  delta_.add_ended(UINT32_MAX);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

TEST_F(HostileDeltaTest, DeltaWithoutRolesForAChangedRowIsRejected) {
  delta_.add_changed(2);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

TEST_F(HostileDeltaTest, DeltaWithRolesForEndedOrMissingRowsIsRejected) {
  delta_.add_changed(2);
  delta_.add_changed_roles(1);
  EXPECT_EQ(Refusal(), "");
  delta_.add_ended(2);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
  delta_.clear_ended();
  delta_.add_changed(4);
  delta_.add_changed_roles(1);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

TEST_F(HostileDeltaTest, DeltaWithTwoRolesForARowIsRejected) {
  for (const uint32_t row : {2u, 0u}) {
    delta_.add_changed(row);
    delta_.add_changed_roles(1);
  }
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

TEST_F(HostileDeltaTest, DeltaThatClaimsTooManyRowsIsRejected) {
  delta_.mutable_snapshot()->mutable_live()->set_count(UINT32_MAX);
  EXPECT_THAT(Refusal(), HasSubstr("does not match"));
}

// ---- In a recording -----------------------------------------------------------------------------

class RecordedSnapshotsTest : public RecordingFixture {
 protected:
  // Writes snapshots "0", "1", ... of a live set in which one block ends and one begins between
  // two.
  void WriteSnapshots(uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; ++at) {
      Add(Alloc(at << 9, 512));
      const Snapshot snapshot = Holding(std::to_string(at), Blocks(at, at + 100));
      written_.push_back(Bytes(snapshot));
      ASSERT_TRUE(writer_->Add(snapshot).ok());
    }
  }
  static std::vector<std::string> BytesOf(const std::vector<Snapshot>& snapshots) {
    std::vector<std::string> bytes;
    for (const Snapshot& snapshot : snapshots) bytes.push_back(Bytes(snapshot));
    return bytes;
  }
  // Returns the frame of the chunk of `kind` that has `before` chunks of its kind before it.
  static FrameRecord FrameOf(const std::string& file, Chunk::Kind kind, int before) {
    const auto source = BytesInMemory(file);
    FrameStream frames(source.get());
    for (;;) {
      const auto frame = frames.Next();
      if (!frame.ok() || frame->kind == FrameRecord::Kind::kEnd) return {};
      Chunk chunk;
      if (frame->kind != FrameRecord::Kind::kChunk) continue;
      EXPECT_TRUE(ParseBytes(frame->body, &chunk));
      if (chunk.kind() != kind || before-- > 0) continue;
      FrameRecord found = *frame;
      found.body = {};
      return found;
    }
  }
  static std::string DamageAt(std::string file, const FrameRecord& frame) {
    file[frame.offset + frame.bytes / 2] = static_cast<char>(~file[frame.offset + frame.bytes / 2]);
    return file;
  }

  std::vector<std::string> written_;
};

TEST_F(RecordedSnapshotsTest, ReaderDeliversCompleteSnapshots) {
  StartRecording();
  WriteSnapshots(0, 40);
  Finish();
  EXPECT_EQ(BytesOf(Read(bytes_).snapshots), written_);
  EXPECT_TRUE(reader_->complete());
  EXPECT_NE(FrameOf(bytes_, Chunk::SNAPSHOT_DELTA, 30).bytes, 0u);
}

TEST_F(RecordedSnapshotsTest, RepeatedBlockCostsNothing) {
  StartRecording();
  ASSERT_TRUE(writer_->Add(Holding("a", Blocks(0, 10'000))).ok());
  const size_t one = bytes_.size();
  ASSERT_TRUE(writer_->Add(Holding("b", Blocks(0, 10'001))).ok());
  Finish();
  EXPECT_LT(bytes_.size() - one, 400u);
}

TEST_F(RecordedSnapshotsTest, IdsOfASecondSegmentAreShiftedOnce) {
  for (const char* name : {"first", "second"}) {
    StartRecording();
    const uint32_t id = writer_->definitions().InternString(name);
    std::vector<Event> live = Blocks(0, 10);
    for (Event& event : live) event.heap = event.dtype = event.shape = id;
    for (const char* snapshot : {"a", "b"}) {
      ASSERT_TRUE(writer_->Add(Holding(snapshot, live)).ok());
      live.erase(live.begin());
      live.push_back(Block(0x9000));
      live.back().heap = live.back().dtype = live.back().shape = id;
    }
    Finish();
  }
  const Collected read = Read(bytes_);
  ASSERT_THAT(read.snapshots, SizeIs(4));
  for (size_t at = 0; at < 4; ++at) {
    const auto live = DecodeLive(read.snapshots[at].live());
    ASSERT_TRUE(live.ok());
    for (const Event& event : *live) {
      for (const uint32_t id : {event.heap, event.dtype, event.shape})
        EXPECT_EQ(reader_->definitions().string(id), at < 2 ? "first" : "second");
    }
  }
}

TEST_F(RecordedSnapshotsTest, LostBaseLosesOnlyItsDeltas) {
  StartRecording();
  WriteSnapshots(0, 4);
  // Nothing in common, so complete again.
  WriteSnapshots(1000, 1003);
  Finish();
  const std::string damaged = DamageAt(bytes_, FrameOf(bytes_, Chunk::SNAPSHOT, 0));
  const Collected read = Read(damaged);
  EXPECT_EQ(BytesOf(read.snapshots), std::vector(written_.begin() + 4, written_.end()));
  EXPECT_THAT(reader_->damage(), SizeIs(4));
  EXPECT_EQ(reader_->damage().back().what, "the snapshot 3 is based on 0, which is lost");
  EXPECT_THAT(read.gaps, SizeIs(1));  // for the damaged chunk
  EXPECT_FALSE(reader_->complete());

  std::string mended;
  const auto repaired = RepairBytes(damaged, "test.gmt", std::make_unique<StringSink>(&mended));
  ASSERT_TRUE(repaired.ok());
  EXPECT_EQ(BytesOf(Read(mended).snapshots), BytesOf(read.snapshots));
  EXPECT_TRUE(reader_->complete());
  EXPECT_THAT(reader_->damage(), IsEmpty());
  EXPECT_THAT(repaired->lost, SizeIs(4));
}

TEST_F(RecordedSnapshotsTest, LostDeltaLosesNoOtherSnapshot) {
  StartRecording();
  WriteSnapshots(0, 4);
  Finish();
  Read(DamageAt(bytes_, FrameOf(bytes_, Chunk::SNAPSHOT_DELTA, 0)));
  written_.erase(written_.begin() + 1);
  EXPECT_EQ(BytesOf(Read(DamageAt(bytes_, FrameOf(bytes_, Chunk::SNAPSHOT_DELTA, 0))).snapshots),
            written_);
}

TEST_F(RecordedSnapshotsTest, CopiedSnapshotIsAlwaysComplete) {
  StartRecording();
  WriteSnapshots(0, 3);
  Finish();
  char path[] = "/tmp/gmt-snapshot-XXXXXX";
  close(mkstemp(path));
  auto file = FileSink(path, IfExists::kOverwrite);
  ASSERT_TRUE(file.ok() && (*file)->Append(bytes_).ok());
  std::string copy;
  const absl::Status copied = CopySnapshot(path, "2", std::make_unique<StringSink>(&copy));
  std::filesystem::remove(path);
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_THAT(BytesOf(Read(copy).snapshots), ElementsAre(written_[2]));
  EXPECT_TRUE(reader_->complete());
  EXPECT_EQ(FrameOf(copy, Chunk::SNAPSHOT_DELTA, 0).bytes, 0u);
}

TEST_F(RecordedSnapshotsTest, PartBeginsWithACompleteSnapshot) {
  WriterOptions options;
  options.parts = true;
  StartRecording(options);
  WriteSnapshots(0, 3);
  std::string next;
  Header header;
  header.set_part(1);
  ASSERT_TRUE(writer_->BeginPart(std::make_unique<StringSink>(&next), header).ok());
  WriteSnapshots(3, 5);
  Finish();
  EXPECT_EQ(BytesOf(Read(next).snapshots), std::vector(written_.begin() + 3, written_.end()));
}

}  // namespace
}  // namespace gmt::format
