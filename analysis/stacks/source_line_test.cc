#include "analysis/stacks/source_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;

class SourceLineTest : public ::testing::Test {
 protected:
  SourceLineTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("gmt_source." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~SourceLineTest() override { std::filesystem::remove_all(folder_); }

  std::string Put(const std::string& name, const std::string& text, time_t changed = 1000) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    const timespec times[2] = {{changed, 0}, {changed, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }

  std::filesystem::path folder_;
  SourceLines sources_{2000'000'000'000};  // 2000 s
};

TEST_F(SourceLineTest, LineIsReturnedWithoutIndentation) {
  const std::string path = Put("model.py", "def f(q):\n\treturn q @ q  \n");
  EXPECT_EQ(sources_.Line(path, 1), "def f(q):");
  EXPECT_EQ(sources_.Line(path, 2), "return q @ q");
}

TEST_F(SourceLineTest, LineAfterTheEndIsUnknown) {
  const std::string path = Put("model.py", "one\n");
  EXPECT_EQ(sources_.Line(path, 0), "");
  EXPECT_EQ(sources_.Line(path, 3), "");
  EXPECT_EQ(sources_.Line(path, UINT32_MAX), "");
  EXPECT_THAT(sources_.Around(path, UINT32_MAX, UINT32_MAX), IsEmpty());
}

TEST_F(SourceLineTest, FileChangedAfterTheRecordingBeganIsNotUsed) {
  EXPECT_EQ(sources_.Line(Put("old.py", "x = 1\n", 2000), 1), "x = 1");
  EXPECT_EQ(sources_.Line(Put("new.py", "x = 1\n", 2001), 1), "");
  SourceLines any(0);
  EXPECT_EQ(any.Line(Put("newer.py", "x = 1\n", 2001), 1), "x = 1");
}

TEST_F(SourceLineTest, StateTellsWhyThereAreNoLines) {
  EXPECT_EQ(sources_.StateOf(Put("old.py", "x = 1\n", 2000)), SourceLines::kThere);
  EXPECT_EQ(sources_.StateOf(Put("new.py", "x = 1\n", 2001)), SourceLines::kNewer);
  EXPECT_EQ(sources_.StateOf(folder_ / "gone.py"), SourceLines::kMissing);
  EXPECT_EQ(sources_.StateOf(folder_), SourceLines::kMissing);
  EXPECT_EQ(sources_.StateOf(Put("empty.py", "")), SourceLines::kMissing);
}

TEST_F(SourceLineTest, RelativePathIsNotRead) {
  EXPECT_EQ(sources_.Line("model.py", 1), "");
  EXPECT_EQ(sources_.Line("", 1), "");
}

TEST_F(SourceLineTest, FifoAndDeviceAndFolderAreNotOpened) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(sources_.Line(fifo, 1), "");
  EXPECT_EQ(sources_.Line("/dev/zero", 1), "");
  EXPECT_EQ(sources_.Line(folder_, 1), "");
}

TEST_F(SourceLineTest, HugeFileIsNotRead) {
  const std::string path = Put("huge.py", "x = 1\n");
  std::filesystem::resize_file(path, (8 << 20) + 1);
  SourceLines any(0);
  EXPECT_EQ(any.Line(path, 1), "");
}

TEST_F(SourceLineTest, BinaryFileIsNotSource) {
  EXPECT_EQ(sources_.Line(Put("a.py", std::string("x\0y\n", 4)), 1), "");
}

TEST_F(SourceLineTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(sources_.Line(Put("a.py", "x = '\x1b[31m'\r\n"), 1), "x = '[31m'");
}

TEST_F(SourceLineTest, LongLineIsCutAfterAWholeCharacter) {
  EXPECT_EQ(sources_.Line(Put("a.py", "abcdefghij\n"), 1, 8), "abcde...");
  EXPECT_EQ(sources_.Line(Put("b.py", "abcdefgh\n"), 1, 8), "abcdefgh");
  EXPECT_EQ(sources_.Line(Put("c.py", "ééééééééé\n"), 1, 8), "ééééé...");
}

TEST_F(SourceLineTest, LinesAroundKeepTheirRelativeIndentation) {
  const std::string path = Put("a.py", "class A:\n    def f(self):\n        x = 1\n\n    y = 2\n");
  const auto lines = sources_.Around(path, 3, 1);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 2u);
  EXPECT_EQ(lines[0].text, "def f(self):");
  EXPECT_EQ(lines[1].text, "    x = 1");
  EXPECT_EQ(lines[2].text, "");
}

}  // namespace
}  // namespace gmt::analysis
