#include "collector/output_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace gmt::collector {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  ssize_t Write(const char* bytes, size_t size) {
    if (interruptions_-- > 0) {
      errno = EINTR;
      return -1;
    }
    const size_t n = std::min({size, room_, piece_});
    if (n == 0) {
      errno = error_;
      return -1;
    }
    written_.append(bytes, n);
    room_ -= n;
    return static_cast<ssize_t>(n);
  }

  size_t room_ = ~size_t{0}, piece_ = ~size_t{0};
  int error_ = ENOSPC, interruptions_ = 0;
  std::string written_;
  OutputFile file_{[this](const char* bytes, size_t size) { return Write(bytes, size); }};
};

TEST_F(OutputFileTest, BytesGoOutInOrder) {
  EXPECT_TRUE(file_.Append("one ").ok());
  EXPECT_TRUE(file_.Append("two").ok());
  EXPECT_EQ(written_, "one two");
  EXPECT_FALSE(file_.stalled());
}

TEST_F(OutputFileTest, ShortWritesAndInterruptionsAreContinued) {
  piece_ = 2;
  interruptions_ = 3;
  EXPECT_TRUE(file_.Append("interrupted").ok());
  EXPECT_EQ(written_, "interrupted");
}

TEST_F(OutputFileTest, WhatDoesNotFitIsKeptAndWrittenOnce) {
  room_ = 4;
  EXPECT_TRUE(file_.Append("abcdef").ok());
  EXPECT_TRUE(file_.stalled());
  EXPECT_TRUE(file_.Append("ghi").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(file_.Retry()));
  room_ = 100;
  EXPECT_TRUE(file_.Retry().ok());
  EXPECT_EQ(written_, "abcdefghi");
  EXPECT_EQ(file_.stalls(), 1);
}

TEST_F(OutputFileTest, SyncFailsWhileBytesAreKept) {
  room_ = 0;
  error_ = EIO;
  EXPECT_TRUE(file_.Append("x").ok());
  const absl::Status status = file_.Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("Input/output error"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace gmt::collector
