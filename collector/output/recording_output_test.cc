#include "collector/output/recording_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

using ::testing::HasSubstr;

class RecordingOutputTest : public ::testing::Test {
 protected:
  RecordingOutputTest() {
    char directory[] = "/tmp/gmt-output-XXXXXX";
    directory_ = mkdtemp(directory);
    fd_ = open(Path("run.gmt").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    parts_ = std::make_unique<PartFiles>(fd_, [this](int fd) { return Calls(fd); });
    file_ = std::make_unique<OutputFile>(Calls(fd_));
    limits_.parts = 4;
  }
  ~RecordingOutputTest() override {
    close(fd_);
    std::filesystem::remove_all(directory_);
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }

  // The calls on a disk that is full while `is_full_()`.
  OutputCalls Calls(int fd) {
    OutputCalls calls = CallsOfFile(fd);
    calls.write = [this, write = calls.write](const char* bytes, size_t size) -> ssize_t {
      if (!is_full_()) return write(bytes, size);
      errno = ENOSPC;
      return -1;
    };
    return calls;
  }
  RecordingOutput Output(RecordingOutput::CreateNext create_next = nullptr) {
    return RecordingOutput(file_.get(), &clock_, std::move(create_next), parts_.get(), limits_);
  }
  // Continues in a part that holds `text`.
  void ContinueIn(RecordingOutput& output, const std::string& text) {
    std::unique_ptr<OutputFile> next = output.CreatePart();
    ASSERT_NE(next, nullptr);
    next->Append(text).IgnoreError();
    OutputFile* file = next.get();
    output.BeginPart(file, std::exchange(file_, std::move(next)), text.size());
  }

  std::string directory_;
  int fd_;
  FakeClock clock_;
  HistoryLimits limits_;
  std::function<bool()> is_full_ = [] { return false; };
  std::unique_ptr<PartFiles> parts_;
  std::unique_ptr<OutputFile> file_;  // the one that is written
};

TEST_F(RecordingOutputTest, IsWritableAgainWhenTheDiskHasRoom) {
  RecordingOutput output = Output();
  is_full_ = [] { return true; };
  file_->Append("text").IgnoreError();
  EXPECT_FALSE(output.IsWritable());
  is_full_ = [] { return false; };
  EXPECT_TRUE(output.IsWritable());
  EXPECT_EQ(FileBytes(Path("run.gmt")), "text");
  EXPECT_THAT(output.Note("first"), HasSubstr("first; writing failed 1 time(s), last: "));
}

TEST_F(RecordingOutputTest, LossOfTheFileIsReportedAgainAndAgain) {
  RecordingOutput output = Output([] { return std::make_unique<OutputFile>(-1); });
  EXPECT_TRUE(output.Check().ok());
  EXPECT_FALSE(output.has_next());
  unlink(Path("run.gmt").c_str());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsDataLoss(output.Check()));
    EXPECT_NE(output.TakeNext(), nullptr);
  }
  EXPECT_THAT(output.Note(""), HasSubstr("the file "));
}

TEST_F(RecordingOutputTest, NextPartGetsTheNameWhenBothAreOnDisk) {
  RecordingOutput output = Output();
  file_->Append("first").IgnoreError();
  EXPECT_EQ(output.next_part(), 1u);
  is_full_ = [] { return true; };
  ContinueIn(output, "second");
  EXPECT_FALSE(output.IsWritable());
  EXPECT_EQ(FileBytes(Path("run.gmt")), "first");
  is_full_ = [] { return false; };
  EXPECT_TRUE(output.IsWritable());
  EXPECT_EQ(FileBytes(Path("run.gmt")), "second");
  EXPECT_EQ(FileBytes(Path("run.part-000000.gmt")), "first");
  EXPECT_EQ(output.next_part(), 2u);
}

TEST_F(RecordingOutputTest, OldestPartMakesRoomOnAFullDisk) {
  RecordingOutput output = Output();
  file_->Append("first").IgnoreError();
  ContinueIn(output, "second");
  ContinueIn(output, "third");
  ASSERT_TRUE(Exists("run.part-000000.gmt"));
  is_full_ = [this] { return Exists("run.part-000000.gmt"); };
  file_->Append(" more").IgnoreError();
  EXPECT_TRUE(output.IsWritable());
  EXPECT_EQ(FileBytes(Path("run.gmt")), "third more");
  EXPECT_FALSE(Exists("run.part-000000.gmt"));
  EXPECT_TRUE(Exists("run.part-000001.gmt"));
}

TEST_F(RecordingOutputTest, PartThatCannotBeCreatedIsTriedAgainLater) {
  RecordingOutput output = Output();
  unlink(Path("run.gmt").c_str());
  EXPECT_STREQ(output.WhyToEndPart(History::kPartBytes, true), "rotate");
  EXPECT_EQ(output.CreatePart(), nullptr);
  EXPECT_THAT(output.Note(""), HasSubstr("its size is not bounded: "));
  EXPECT_EQ(output.WhyToEndPart(History::kPartBytes, true), nullptr);
  clock_.now_ns += 10 * kSecond;
  EXPECT_STREQ(output.WhyToEndPart(History::kPartBytes, true), "rotate");
}

}  // namespace
}  // namespace gmt::collector
