#include "session/ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

using Outcome = RingReader::Outcome;
using Loss = RingReader::Loss;

class RingTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 8;

  static Record Numbered(uint64_t n) {
    Record record;
    record.kind = Kind::kAlloc;
    record.space = Space::kDevice;
    record.memory = Memory::kDevice;
    record.value = n;
    return record;
  }

  void Write(uint64_t n) { writer_.Commit(writer_.Reserve(), Pack(Numbered(n))); }
  void WriteMany(uint64_t count) {
    for (uint64_t n = 0; n < count; ++n) Write(n);
  }

  Outcome Read() {
    const Outcome outcome = reader_.Next(&record_, &ticket_, &lost_);
    const RingLosses l = reader_.losses();
    EXPECT_EQ(l.written, l.delivered + l.overrun + l.holes + l.abandoned + l.backlog);
    return outcome;
  }

  void ExpectLost(uint64_t first, uint64_t last, Loss why) {
    ASSERT_EQ(Read(), Outcome::kLost);
    EXPECT_EQ(lost_.first, first);
    EXPECT_EQ(lost_.last, last);
    EXPECT_EQ(lost_.why, why);
  }

  Control control_ = {};
  Slot slots_[kCapacity] = {};
  RingWriter writer_{&control_, slots_, kCapacity};
  RingReader reader_{&control_, slots_, kCapacity};
  Record record_;
  uint64_t ticket_ = 0;
  RingReader::Lost lost_ = {};
};

TEST_F(RingTest, EmptyRingHasNothingToRead) { EXPECT_EQ(Read(), Outcome::kEmpty); }

TEST_F(RingTest, RecordsArriveInTicketOrder) {
  WriteMany(kCapacity);
  for (uint64_t n = 0; n < kCapacity; ++n) {
    ASSERT_EQ(Read(), Outcome::kRecord);
    EXPECT_EQ(ticket_, n);
    EXPECT_EQ(record_.value, n);
  }
  EXPECT_EQ(Read(), Outcome::kEmpty);
}

TEST_F(RingTest, RecordBeingWrittenIsPending) {
  const auto reservation = writer_.Reserve();
  EXPECT_EQ(Read(), Outcome::kPending);
  writer_.Commit(reservation, Pack(Numbered(7)));
  EXPECT_EQ(Read(), Outcome::kRecord);
  EXPECT_EQ(record_.value, 7u);
}

TEST_F(RingTest, LappedReaderReportsOverrunAndContinuesWithTheOldestRecord) {
  WriteMany(kCapacity + 3);
  ExpectLost(0, 2, Loss::kOverrun);
  ASSERT_EQ(Read(), Outcome::kRecord);
  EXPECT_EQ(ticket_, 3u);
  EXPECT_EQ(reader_.losses().overrun, 3u);
}

TEST_F(RingTest, ReaderManyLapsBehindReportsOneLoss) {
  WriteMany(100 * kCapacity);
  ExpectLost(0, 99 * kCapacity - 1, Loss::kOverrun);
}

TEST_F(RingTest, WriterKilledBeforeCommitLeavesOneHole) {
  Write(1);
  writer_.Reserve();
  Write(3);
  EXPECT_EQ(Read(), Outcome::kRecord);
  EXPECT_EQ(Read(), Outcome::kPending);
  const RingReader::Lost lost = reader_.SkipPending();
  EXPECT_EQ(lost.first, 1u);
  EXPECT_EQ(lost.last, 1u);
  EXPECT_EQ(lost.why, Loss::kHole);
  EXPECT_EQ(Read(), Outcome::kRecord);
  EXPECT_EQ(record_.value, 3u);
  EXPECT_EQ(reader_.losses().holes, 1u);
}

TEST_F(RingTest, WriterOneLapBehindMakesTheNextOneAbandonItsTicket) {
  const auto slow = writer_.Reserve();
  WriteMany(kCapacity - 1);
  const auto blocked = writer_.Reserve();
  EXPECT_FALSE(blocked.claimed);
  writer_.Commit(blocked, Pack(Numbered(99)));
  EXPECT_EQ(control_.counters[kAbandoned].load(), 1u);
  writer_.Commit(slow, Pack(Numbered(0)));
  ExpectLost(0, 0, Loss::kOverrun);  // the tail is a whole lap ahead
  for (uint64_t n = 1; n < kCapacity; ++n) ASSERT_EQ(Read(), Outcome::kRecord);
  ExpectLost(kCapacity, kCapacity, Loss::kAbandoned);
  EXPECT_EQ(Read(), Outcome::kEmpty);
}

TEST_F(RingTest, AbandonedSlotIsUsedInTheNextLap) {
  const auto slow = writer_.Reserve();
  WriteMany(kCapacity - 1);
  writer_.Commit(writer_.Reserve(), Pack(Numbered(99)));
  writer_.Commit(slow, Pack(Numbered(0)));
  for (uint64_t n = kCapacity + 1; n <= 2 * kCapacity; ++n) Write(n);
  uint64_t newest = 0;
  for (Outcome o = Read(); o != Outcome::kEmpty; o = Read()) newest = record_.value;
  EXPECT_EQ(newest, 2 * kCapacity);
  EXPECT_EQ(control_.counters[kAbandoned].load(), 1u);
}

TEST_F(RingTest, OvertakenWriterAbandonsItsTicket) {
  writer_.Reserve();
  slots_[1].commit.store(1 + kCapacity +
                         1);  // ticket 9 was written while the writer of ticket 1 slept
  const auto overtaken = writer_.Reserve();
  EXPECT_EQ(overtaken.ticket, 1u);
  EXPECT_FALSE(overtaken.claimed);
}

TEST_F(RingTest, CommitWordShowsThatALateWriterFinished) {
  const auto late = writer_.Reserve();
  const uint64_t before = reader_.CommitWord(0);
  writer_.Commit(late, Pack(Numbered(0)));
  EXPECT_NE(reader_.CommitWord(0), before);
}

TEST_F(RingTest, CorruptCommitWordNeverYieldsARecord) {
  Write(1);
  for (const uint64_t word : {uint64_t{0}, uint64_t{17}, kBusy | 3, ~uint64_t{0}}) {
    slots_[0].commit.store(word);
    RingReader reader(&control_, slots_, kCapacity);
    EXPECT_NE(reader.Next(&record_, &ticket_, &lost_), Outcome::kRecord) << word;
  }
}

TEST_F(RingTest, CorruptPayloadIsReported) {
  Write(1);
  slots_[0].words[6].store(0xff);
  ExpectLost(0, 0, Loss::kScribbled);
  EXPECT_EQ(reader_.losses().holes, 1u);
}

TEST_F(RingTest, TailThatMovedBackIsNotReadBackwards) {
  WriteMany(5);
  while (Read() == Outcome::kRecord) {
  }
  control_.tail.store(2);
  EXPECT_EQ(Read(), Outcome::kEmpty);
}

TEST_F(RingTest, TailThatJumpedIsAnOverrun) {
  WriteMany(5);
  control_.tail.store(~uint64_t{0});
  ASSERT_EQ(Read(), Outcome::kLost);
  EXPECT_EQ(lost_.last, ~uint64_t{0} - kCapacity - 1);
}

// Returns a record whose fields all depend on `n`, so that a torn one is detected.
Record SelfChecking(uint64_t n) {
  Record record;
  record.kind = Kind::kAlloc;
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  record.time_ns = n;
  record.value = ~n;
  record.size = n * 3;
  record.stream = n ^ 0x5555;
  record.stack = static_cast<uint32_t>(n);
  return record;
}

TEST(RingThreadsTest, RecordsAreNeverTornAndAccountingAlwaysHolds) {
  ForEachSeed(SeedsUpTo(10), [](uint32_t seed) {
    SessionSizes sizes = SmallSizes();
    sizes.ring = uint64_t{64} << seed % 5;
    ScratchSession session(sizes);
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (uint64_t t = 0; t < 4; ++t) {
      writers.emplace_back([&, t] {
        const RingWriter ring = session.map().ring_writer();
        for (uint64_t n = t; !stop.load(std::memory_order_relaxed); n += 4) {
          ring.Commit(ring.Reserve(), Pack(SelfChecking(n)));
        }
      });
    }
    RingReader reader = session.map().ring_reader();
    Record record;
    uint64_t ticket, last_ticket = 0, wrong = 0;
    RingReader::Lost lost;
    while (reader.losses().delivered < 2000 && wrong == 0) {
      for (int i = 0; i < 1000; ++i) {
        if (reader.Next(&record, &ticket, &lost) != Outcome::kRecord) continue;
        wrong += record != SelfChecking(record.time_ns) || ticket < last_ticket;
        last_ticket = ticket;
      }
      const RingLosses l = reader.losses();
      wrong += l.written != l.delivered + l.overrun + l.holes + l.abandoned + l.backlog;
    }
    stop.store(true);
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(wrong, 0u);
  });
}

}  // namespace
}  // namespace gmt::session
