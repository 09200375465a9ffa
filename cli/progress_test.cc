#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace gmt::cli {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// A file that another thread writes to.
class Screen {
 public:
  Screen() : file_(std::tmpfile()) {}
  ~Screen() { std::fclose(file_); }
  FILE* file() { return file_; }
  std::string Text() const {
    std::string text(1 << 16, '\0');
    const ssize_t size = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }
  void Await(const std::string& words) const {
    while (Text().find(words) == std::string::npos) usleep(1000);
  }

 private:
  FILE* file_;
};

TEST(Progress, PrintsTheStageAndErasesItAtTheEnd) {
  Screen screen;
  {
    Progress progress("reading run.gmt", screen.file(), milliseconds(10));
    progress.Count(1'234'567);
    screen.Await("gpumemtrace: reading run.gmt: 1,234,567 events, ");
  }
  EXPECT_THAT(screen.Text(), HasSubstr(" s"));
  EXPECT_THAT(screen.Text(), EndsWith("\r\x1b[K"));
}

TEST(Progress, NextStageCountsItsOwnEvents) {
  Screen screen;
  Progress progress("reading run.gmt", screen.file(), milliseconds(10));
  progress.Count(5);
  progress.Stage("naming frames");
  screen.Await("gpumemtrace: naming frames: ");
  EXPECT_THAT(screen.Text(), Not(HasSubstr("naming frames: 5")));
}

TEST(Progress, PrintsNothingIfQuick) {
  Screen screen;
  { Progress progress("reading run.gmt", screen.file(), std::chrono::hours(1)); }
  EXPECT_EQ(screen.Text(), "");
}

}  // namespace
}  // namespace gmt::cli
