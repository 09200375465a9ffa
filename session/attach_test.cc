#include "session/attach.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "session/session_file.h"
#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

constexpr uint32_t Number(uint32_t n) { return n | kAttachRequested; }

// A session with an attach gate, as seen by its process and by an attaching client.
class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CreateSession(SessionSizes(), "version\0001\0", &session_, AttachGate::kDormant), 0);
    initial_bytes_ = Bytes();
  }
  void TearDown() override {
    close(session_.fd);
  }

  uint64_t Bytes() const {
    struct stat st;
    return fstat(session_.fd, &st) == 0 ? static_cast<uint64_t>(st.st_blocks) * 512 : 0;
  }
  int Back() { return BackSections(session_.map, session_.arena_words, session_.path); }
  Control& control() { return session_.map.control(); }

  ScratchDirectory directory_;
  CreatedSession session_;
  uint64_t initial_bytes_ = 0;
};

TEST_F(AttachTest, DormantSessionHasAlmostNoMemory) {
  EXPECT_LE(Bytes(), uint64_t{256} << 10);
  EXPECT_GT(session_.size, uint64_t{16} << 20);
  EXPECT_TRUE(session_.map.has_attach_gate());
  EXPECT_EQ(CheckHeader(session_.map.header(), session_.size), nullptr);
}

TEST_F(AttachTest, MemoryIsZeroedAndReleasedAgain) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(Back(), 0);
    EXPECT_GT(Bytes(), uint64_t{16} << 20);
    auto* words = session_.map.section<uint64_t>(kLiveKeys);
    for (uint64_t i = 0; i < session_.map.count(kLiveKeys); ++i) ASSERT_EQ(words[i], 0u);
    words[7] = 42;
    EXPECT_TRUE(DropSections(session_.map));
    EXPECT_EQ(Bytes(), initial_bytes_);
  }
}

TEST_F(AttachTest, FurtherLevelsOfTheLiveTableAreReleasedAndZeroedToo) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(Back(), 0);
    control().live_levels = 0;
    const LiveTable live = session_.map.live();
    for (uint64_t n = 0; n < 100000; ++n)
      ASSERT_EQ(live.Insert(Space::kDevice, n * 512, {}), LiveTable::Result::kDone);
    EXPECT_EQ(control().live_levels, 1u);
    uint64_t entries = 0;
    live.Scan([&](Space, uint64_t, const LiveValue&) { ++entries; });
    EXPECT_EQ(entries, 100000u);
    EXPECT_TRUE(round == 0 ? ReleaseSections(session_.fd, session_.map)
                           : DropSections(session_.map));
    EXPECT_EQ(Bytes(), initial_bytes_);
  }
}

TEST_F(AttachTest, LevelsThatKeptTheirMemoryAreEmptied) {
  ASSERT_EQ(Back(), 0);
  const LiveTable live = session_.map.live();
  for (uint64_t n = 0; n < 100000; ++n) live.Insert(Space::kDevice, n * 512, {});
  EXPECT_EQ(live.EmptyFurtherLevels(), 0);
  const auto* words = session_.map.section<uint64_t>(kLiveLevel1);
  const uint64_t count = session_.map.count(kLiveLevel1) * LiveLevel::kStride / sizeof(uint64_t);
  EXPECT_EQ(std::count(words, words + count, 0u), static_cast<int64_t>(count));
}

// A program may lock all its memory, before a session is created and between two attaches.
TEST_F(AttachTest, LockedMemoryIsReleasedToo) {
  const pid_t child = fork();
  if (child == 0) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) _exit(255);
    for (int round = 0; round < 2; ++round) {
      if (Back() != 0 || Bytes() < uint64_t{16} << 20) _exit(1);
      session_.map.section<uint64_t>(kStackIndex)[3] = 42;
      if (!DropSections(session_.map) || Bytes() != initial_bytes_) _exit(2);
    }
    _exit(Back() == 0 && session_.map.section<uint64_t>(kStackIndex)[3] == 0 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 255)
    GTEST_SKIP() << "locking memory is not permitted here";
  EXPECT_EQ(status, 0);
}

TEST_F(AttachTest, DataLeftByAKilledReaderIsZeroed) {
  ASSERT_EQ(Back(), 0);
  session_.map.section<uint64_t>(kStackIndex)[3] = 42;
  ASSERT_EQ(Back(), 0);
  EXPECT_EQ(session_.map.section<uint64_t>(kStackIndex)[3], 0u);
}

TEST_F(AttachTest, OneAttachAtATime) {
  EXPECT_EQ(RequestAttach(&control(), "stacks=none"), Number(1));
  EXPECT_EQ(std::string(control().attach_options, control().attach_options_size), "stacks=none");
  EXPECT_EQ(RequestAttach(&control(), ""), 0u);
  control().attach_now = Number(1);
  control().attach_last = Number(1);
  EndAttach(&control(), Number(1));
  EXPECT_EQ(RequestAttach(&control(), ""), 0u) << "the process has not detached yet";
  control().attach_now = 0;
  EXPECT_EQ(RequestAttach(&control(), ""), Number(2));
}

TEST_F(AttachTest, NumberOfARefusedAttachIsNotReused) {
  EXPECT_EQ(RequestAttach(&control(), ""), Number(1));
  control().attach_refused = Number(1);
  EndAttach(&control(), Number(1));
  EXPECT_EQ(RequestAttach(&control(), ""), Number(2));
}

TEST_F(AttachTest, EveryAttachNumberHasTheRequestBit) {
  control().attach_last = 0xffffffff;  // the largest: counting begins again
  EXPECT_EQ(RequestAttach(&control(), ""), Number(0));
}

TEST_F(AttachTest, EndOfAnOldAttachDoesNotEndTheCurrentOne) {
  EXPECT_EQ(RequestAttach(&control(), ""), Number(1));
  EndAttach(&control(), Number(2));
  EXPECT_EQ(control().attach_wanted, Number(1));
  EndAttach(&control(), Number(1));
  EXPECT_EQ(control().attach_wanted, 0u);
}

TEST_F(AttachTest, TooLongOptionsAreRejected) {
  EXPECT_EQ(RequestAttach(&control(), std::string(sizeof(control().attach_options) + 1, 'x')), 0u);
  EXPECT_EQ(control().attach_wanted, 0u);
}

TEST_F(AttachTest, ReaderReleasesMemoryOnlyIfTheProcessDoesNotWrite) {
  ASSERT_EQ(Back(), 0);
  control().attach_now = 1;
  EXPECT_FALSE(ReleaseSections(session_.fd, session_.map));
  EXPECT_GT(Bytes(), initial_bytes_);
  control().attach_now = 0;
  EXPECT_TRUE(ReleaseSections(session_.fd, session_.map));
  EXPECT_EQ(Bytes(), initial_bytes_);
}

TEST_F(AttachTest, ReaderOfALaterAttachStartsAtItsFirstTicket) {
  ASSERT_EQ(Back(), 0);
  control().tail = 1000;
  control().attach_first_ticket = 1000;
  RingReader reader = session_.map.ring_reader();
  Record record = {}, read;
  record.kind = Kind::kMark;
  record.value = 7;
  const RingWriter writer = session_.map.ring_writer();
  writer.Commit(writer.Reserve(), Pack(record));
  uint64_t ticket;
  RingReader::Lost lost;
  ASSERT_EQ(reader.Next(&read, &ticket, &lost), RingReader::Outcome::kRecord);
  EXPECT_EQ(ticket, 1000u);
  EXPECT_EQ(read.value, 7u);
  EXPECT_EQ(reader.losses().written, 1u);
  EXPECT_EQ(reader.losses().delivered, 1u);
}

TEST_F(AttachTest, CountersAreRelativeToTheAttach) {
  control().counters[kStacksFull] = 5;
  control().attach_counters[kStacksFull] = 3;
  EXPECT_EQ(CountOf(control(), kStacksFull), 2u);
}

}  // namespace
}  // namespace gmt::session
