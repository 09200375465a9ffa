#include "session/attach.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "session/session_file.h"

namespace gmt::session {
namespace {

// A session with a door, as its process and as an attaching side see it.
class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/attach_test.XXXXXX";
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    setenv("GPUMEMTRACE_DIR", directory_.c_str(), 1);
    ASSERT_EQ(CreateSession(SessionSizes(), "version\0001\0", &session_, AttachDoor::kDormant), 0);
    at_first_ = Bytes();
  }
  void TearDown() override {
    unlink(session_.path);
    rmdir(directory_.c_str());
    close(session_.fd);
    unsetenv("GPUMEMTRACE_DIR");
  }

  uint64_t Bytes() const {
    struct stat st;
    return fstat(session_.fd, &st) == 0 ? static_cast<uint64_t>(st.st_blocks) * 512 : 0;
  }
  int Back() { return BackSections(session_.map, session_.arena_words, session_.path); }
  Control& control() { return session_.map.control(); }

  std::string directory_;
  CreatedSession session_;
  uint64_t at_first_ = 0;
};

TEST_F(AttachTest, DormantSessionHasNextToNoMemory) {
  EXPECT_LE(Bytes(), uint64_t{256} << 10);
  EXPECT_GT(session_.size, uint64_t{16} << 20);
  EXPECT_TRUE(session_.map.has_door());
  EXPECT_EQ(CheckHeader(session_.map.header(), session_.size), nullptr);
}

TEST_F(AttachTest, MemoryComesEmptyAndGoesAgain) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(Back(), 0);
    EXPECT_GT(Bytes(), uint64_t{16} << 20);
    auto* words = session_.map.section<uint64_t>(kLiveKeys);
    for (uint64_t i = 0; i < session_.map.count(kLiveKeys); ++i) ASSERT_EQ(words[i], 0u);
    words[7] = 42;
    EXPECT_TRUE(DropSections(session_.map));
    EXPECT_EQ(Bytes(), at_first_);
  }
}

TEST_F(AttachTest, WhatAKilledReaderHasLeftIsEmptied) {
  ASSERT_EQ(Back(), 0);
  session_.map.section<uint64_t>(kStackIndex)[3] = 42;
  ASSERT_EQ(Back(), 0);
  EXPECT_EQ(session_.map.section<uint64_t>(kStackIndex)[3], 0u);
}

TEST_F(AttachTest, OneAttachAtATime) {
  EXPECT_EQ(AskForAttach(&control(), "stacks=none"), 1u);
  EXPECT_EQ(std::string(control().attach_options, control().attach_options_size), "stacks=none");
  EXPECT_EQ(AskForAttach(&control(), ""), 0u);
  control().attach_now = 1;
  control().attach_last = 1;
  EndAttach(&control());
  EXPECT_EQ(AskForAttach(&control(), ""), 0u) << "the process has not let go yet";
  control().attach_now = 0;
  EXPECT_EQ(AskForAttach(&control(), ""), 2u);
}

TEST_F(AttachTest, RefusedAttachIsNotAskedForAgainUnderItsNumber) {
  EXPECT_EQ(AskForAttach(&control(), ""), 1u);
  control().attach_refused = 1;
  EndAttach(&control());
  EXPECT_EQ(AskForAttach(&control(), ""), 2u);
}

TEST_F(AttachTest, TooLongOptionsAreNotTaken) {
  EXPECT_EQ(AskForAttach(&control(), std::string(sizeof(control().attach_options) + 1, 'x')), 0u);
  EXPECT_EQ(control().attach_wanted, 0u);
}

TEST_F(AttachTest, ReaderTakesMemoryAwayOnlyWhenNobodyWrites) {
  ASSERT_EQ(Back(), 0);
  control().attach_now = 1;
  EXPECT_FALSE(ReleaseSections(session_.fd, session_.map));
  EXPECT_GT(Bytes(), at_first_);
  control().attach_now = 0;
  EXPECT_TRUE(ReleaseSections(session_.fd, session_.map));
  EXPECT_EQ(Bytes(), at_first_);
}

TEST_F(AttachTest, ReaderOfALaterAttachBeginsAtItsFirstTicket) {
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

TEST_F(AttachTest, CountersCountFromTheAttachOn) {
  control().counters[kStacksFull] = 5;
  control().attach_counters[kStacksFull] = 3;
  EXPECT_EQ(CountOf(control(), kStacksFull), 2u);
}

}  // namespace
}  // namespace gmt::session
