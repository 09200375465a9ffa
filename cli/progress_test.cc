#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gmt::cli {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;

// A file in memory that keeps all that is written to it.
class Screen {
 public:
  Screen() : file_(open_memstream(&text_, &size_)) {}
  ~Screen() {
    std::fclose(file_);
    free(text_);
  }
  FILE* file() { return file_; }
  std::string Text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* file_;
};

TEST(Progress, SaysWhatTakesLongAndIsGoneAtTheEnd) {
  Screen screen;
  {
    Progress progress("reading run.gmt", screen.file(), milliseconds(10));
    progress.Count(1'234'567);
    std::this_thread::sleep_for(milliseconds(200));
  }
  EXPECT_THAT(screen.Text(), HasSubstr("gpumemtrace: reading run.gmt: 1,234,567 events, 0 s"));
  EXPECT_THAT(screen.Text(), EndsWith("\r\x1b[K"));
}

TEST(Progress, NextStageCountsItsOwnEvents) {
  Screen screen;
  {
    Progress progress("reading run.gmt", screen.file(), milliseconds(10));
    progress.Count(5);
    progress.Stage("naming frames");
    std::this_thread::sleep_for(milliseconds(200));
  }
  EXPECT_THAT(screen.Text(), HasSubstr("gpumemtrace: naming frames: 0 s"));
}

TEST(Progress, WhatIsQuickIsNotTold) {
  Screen screen;
  { Progress progress("reading run.gmt", screen.file(), std::chrono::hours(1)); }
  EXPECT_EQ(screen.Text(), "");
}

}  // namespace
}  // namespace gmt::cli
