#include "collector/output/part_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

class PartFilesTest : public ::testing::Test {
 protected:
  PartFilesTest() {
    char directory[] = "/tmp/gmt-parts-XXXXXX";
    directory_ = mkdtemp(directory);
    fd_ = open(Path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0640);
    (void)!write(fd_, "first", 5);
    files_ = std::make_unique<PartFiles>(fd_);
  }
  ~PartFilesTest() override {
    files_ = nullptr;
    close(fd_);
    std::filesystem::remove_all(directory_);
  }
  std::string Path(const std::string& name = "run.gmt") const { return directory_ + "/" + name; }

  std::string directory_;
  int fd_;
  std::unique_ptr<PartFiles> files_;
};

TEST_F(PartFilesTest, PublishedPartTakesTheName) {
  auto next = files_->Create();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE((*next)->Append("second").ok());
  EXPECT_EQ(FileBytes(Path()), "first");
  ASSERT_TRUE(files_->Publish(0).ok());
  EXPECT_EQ(FileBytes(Path()), "second");
  EXPECT_EQ(FileBytes(Path("run.part-000000.gmt")), "first");
  EXPECT_FALSE(std::filesystem::exists(Path("run.gmt.next")));
  struct stat st;
  ASSERT_EQ(fstat(files_->fd(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  EXPECT_TRUE((*next)->Check().ok()) << "it has a name and all its bytes";
}

// On a file system without hard links, if the first of two attempts failed halfway.
TEST_F(PartFilesTest, PartThatHasItsNameAlreadyKeepsIt) {
  auto next = files_->Create();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE((*next)->Append("second").ok());
  std::filesystem::rename(Path(), Path("run.part-000000.gmt"));
  const absl::Status published = files_->Publish(0);
  EXPECT_TRUE(published.ok()) << published;
  EXPECT_EQ(FileBytes(Path("run.part-000000.gmt")), "first");
  EXPECT_EQ(FileBytes(Path()), "second");
}

TEST_F(PartFilesTest, RemovingAMissingPartDoesNothing) {
  ASSERT_TRUE(files_->Create().ok());
  ASSERT_TRUE(files_->Publish(0).ok());
  files_->Remove(0);
  files_->Remove(0);
  EXPECT_FALSE(std::filesystem::exists(Path("run.part-000000.gmt")));
  EXPECT_TRUE(std::filesystem::exists(Path()));
}

TEST_F(PartFilesTest, FileLeftByAKilledCollectorIsOverwritten) {
  ASSERT_TRUE(files_->Create().ok());
  ASSERT_TRUE(files_->Create().ok());
  ASSERT_TRUE(files_->Publish(0).ok());
  EXPECT_EQ(FileBytes(Path()), "");
}

TEST_F(PartFilesTest, RecordingWithoutANameHasNoParts) {
  unlink(Path().c_str());
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Create().status()));
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(PartFiles(pipe_fds[1]).Create().status()));
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_F(PartFilesTest, AnotherFileUnderTheNameIsLeftAlone) {
  unlink(Path().c_str());
  const int other = open(Path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  EXPECT_FALSE(files_->Create().ok());
  close(other);
}

}  // namespace
}  // namespace gmt::collector
