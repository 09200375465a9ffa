// Runs `gpumemtrace leaks` as a program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LeaksProgramTest : public ProgramFixture {
 protected:
  // Writes the log of a loop that keeps one block of each step, or none.
  void PutLog(int steps, bool leaks) {
    std::string log =
        R"({"kind":"stack","id":7,"frames":[{"function":"train","file":"/src/train.py","line":41,"language":"python"}]})"
        "\n";
    for (int step = 0; step <= steps; ++step) {
      const std::string t = std::to_string(step * 1000), address = std::to_string((step + 1) << 16);
      log += R"({"kind":"mark","t_ns":)" + t + R"(,"name":"step"})" + "\n";
      log += R"({"kind":"alloc","t_ns":)" + t + R"(,"heap":"pytorch","device":0,"address":)" +
             address + R"(,"size":4096,"stack":7})" + "\n";
      if (!leaks)
        log += R"({"kind":"free","t_ns":)" + t + R"(,"heap":"pytorch","device":0,"address":)" +
               address + "}\n";
    }
    Put("log.jsonl", log);
  }
};

TEST_F(LeaksProgramTest, LeakIsFoundInAnEventLogAndInItsRecording) {
  PutLog(210, true);
  EXPECT_EQ(Run("leaks log.jsonl"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("Leak: 4.00 KiB per step on GPU 0 at train.py:41"));
  ASSERT_EQ(Run("import log.jsonl -o run.gmt"), 0) << err_;
  EXPECT_EQ(Run("leaks run.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("Leak: 4.00 KiB per step on GPU 0 at train.py:41"));
}

TEST_F(LeaksProgramTest, FailOptionFailsOnlyIfThereIsALeak) {
  PutLog(210, true);
  EXPECT_EQ(Run("leaks log.jsonl --fail"), 3);
  EXPECT_EQ(Run("leaks log.jsonl --fail --json"), 3);
  EXPECT_EQ(Run("leaks log.jsonl --fail --device 0"), 3);
  PutLog(40, true);
  EXPECT_EQ(Run("leaks log.jsonl --fail"), 0);
  PutLog(210, false);
  EXPECT_EQ(Run("leaks log.jsonl --fail"), 0);
  EXPECT_THAT(out_, StartsWith("No leak: "));
}

TEST_F(LeaksProgramTest, WindowLimitsWhatIsCompared) {
  PutLog(210, true);
  EXPECT_EQ(Run("leaks log.jsonl --to 0.00012"), 0);
  EXPECT_THAT(out_, StartsWith("Likely a leak: "));
  EXPECT_EQ(Run("leaks log.jsonl --from 1"), 0);
  EXPECT_THAT(out_, StartsWith("Too early to tell: "));
  EXPECT_EQ(Run("leaks log.jsonl --from 2 --to 1"), 2);
}

TEST_F(LeaksProgramTest, SuspectsAreLimitedByTop) {
  PutLog(210, true);
  EXPECT_EQ(RunJson("leaks log.jsonl --json")["suspects"].size(), 1u);
  EXPECT_EQ(Run("leaks log.jsonl --top -1"), 2);
}

TEST_F(LeaksProgramTest, MissingAndForeignFilesAreErrors) {
  EXPECT_EQ(Run("leaks nothing.gmt"), 1);
  Put("notes.txt", "this is no recording");
  EXPECT_EQ(Run("leaks notes.txt"), 1);
  EXPECT_THAT(err_, HasSubstr("notes.txt"));
}

}  // namespace
}  // namespace gmt::cli
