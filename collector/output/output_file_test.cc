#include "collector/output/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

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

TEST_F(OutputFileTest, BytesAreWrittenInOrder) {
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

TEST_F(OutputFileTest, BytesThatDoNotFitAreKeptAndWrittenOnce) {
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

TEST_F(OutputFileTest, ReasonOfTheLastFailureIsKept) {
  room_ = 0;
  error_ = EDQUOT;
  EXPECT_TRUE(file_.Append("x").ok());
  EXPECT_EQ(file_.stall_reason(), "Disk quota exceeded");
  room_ = 10;
  EXPECT_TRUE(file_.Retry().ok());
  EXPECT_EQ(file_.stall_reason(), "Disk quota exceeded");
}

// ---- Changes of the file by others --------------------------------------------------------------

class TakenAwayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/gmt-output-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/run.gmt";
    fd_ = open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0640);
    file_ = std::make_unique<OutputFile>(fd_);
    ASSERT_TRUE(file_->Append("0123456789").ok());
  }
  void TearDown() override {
    close(fd_);
    std::filesystem::remove_all(folder_);
  }
  // Returns the path of the next output; its descriptor is closed.
  std::string Next() {
    auto next = CreateNextOutput(fd_);
    if (!next.ok()) return std::string(next.status().message());
    struct stat st;
    EXPECT_EQ(fstat(next->fd, &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0640u);
    EXPECT_NE(flock(open(next->path.c_str(), O_RDONLY), LOCK_SH | LOCK_NB), 0) << "not locked";
    close(next->fd);
    return next->path;
  }

  std::string folder_, path_;
  int fd_ = -1;
  std::unique_ptr<OutputFile> file_;
};

TEST_F(TakenAwayTest, UnchangedFileIsFine) { EXPECT_TRUE(file_->Check().ok()); }

TEST_F(TakenAwayTest, RenamedFileIsStillTheSame) {
  std::filesystem::rename(path_, folder_ + "/other.gmt");
  EXPECT_TRUE(file_->Check().ok());
}

TEST_F(TakenAwayTest, DeletedFileIsNoticedAndItsNameIsReused) {
  std::filesystem::remove(path_);
  EXPECT_TRUE(absl::IsDataLoss(file_->Check()));
  EXPECT_EQ(Next(), path_);
}

TEST_F(TakenAwayTest, NameOfAnotherFileIsNotReused) {
  std::filesystem::remove(path_);
  std::ofstream(path_) << "precious";
  EXPECT_EQ(Next(), folder_ + "/run.1.gmt");
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(TakenAwayTest, TruncatedFileIsNoticed) {
  ASSERT_EQ(ftruncate(fd_, 9), 0);
  EXPECT_EQ(file_->Check().message(), "was cut to 9 bytes while it was written");
  EXPECT_EQ(Next(), folder_ + "/run.1.gmt");
}

TEST_F(TakenAwayTest, DeletedFolderIsAnError) {
  std::filesystem::remove_all(folder_);
  EXPECT_TRUE(absl::IsDataLoss(file_->Check()));
  EXPECT_NE(Next().find("No such file or directory"), std::string::npos);
}

TEST_F(TakenAwayTest, PipeHasNothingToCheck) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  OutputFile pipe_end(fds[1]);
  EXPECT_TRUE(pipe_end.Append("x").ok());
  EXPECT_TRUE(pipe_end.Check().ok());
  EXPECT_TRUE(pipe_end.SyncToDisk().ok());
  EXPECT_FALSE(CreateNextOutput(fds[1]).ok());
  close(fds[0]);
  close(fds[1]);
}

TEST(SyncToDiskTest, DiskErrorIsReturnedAndInterruptionIsRetried) {
  int error = EINTR, calls = 0;
  OutputCalls disk;
  disk.write = [](const char*, size_t size) { return static_cast<ssize_t>(size); };
  disk.sync = [&] {
    ++calls;
    errno = std::exchange(error, EIO);
    return -1;
  };
  OutputFile file(disk);
  EXPECT_FALSE(file.SyncToDisk().ok());
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace gmt::collector
