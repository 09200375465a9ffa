// Runs `gpumemtrace diff` as a program.

#include <gmock/gmock.h>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kHeader[] =
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1}
{"kind":"stack","id":7,"frames":[{"function":"forward","file":"model.py","line":88,"language":"python"}]}
)";

class DiffProgramTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    Put("base.jsonl", Log(1048576));
    Put("new.jsonl", Log(3145728));
  }
  static std::string Log(int size) {
    return kHeader +
           (R"({"kind":"alloc","t_ns":12,"heap":"driver","device":0,"address":4096,"stack":7,"size":)" +
            std::to_string(size) + "}\n");
  }
};

TEST_F(DiffProgramTest, PrintsTheChange) {
  EXPECT_EQ(Run("diff base.jsonl new.jsonl"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("GPU 0: +2.00 MiB (+200.0 %), 1.00 MiB -> 3.00 MiB allocated\n"));
  EXPECT_THAT(out_, HasSubstr("forward (model.py:88)"));
}

TEST_F(DiffProgramTest, RecordingAndLogOfItAreTheSame) {
  ASSERT_EQ(Run("import base.jsonl -o base.gmt"), 0) << err_;
  const nlohmann::json found = RunJson("diff base.gmt base.jsonl --json");
  EXPECT_TRUE(found["rows"].empty());
  EXPECT_EQ(found["failed"], false);
}

TEST_F(DiffProgramTest, LimitDecidesTheExitCode) {
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --fail-above 2%"), 3);
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --fail-above 2%  --markdown"), 3);
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --fail-above 2MiB --json"), 0);
  EXPECT_EQ(Run("diff new.jsonl base.jsonl --fail-above 0"), 0);
}

TEST_F(DiffProgramTest, ReportsWrongUsage) {
  EXPECT_EQ(Run("diff base.jsonl"), 2);
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --json --markdown"), 2);
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --fail-above much"), 2);
  EXPECT_THAT(err_, HasSubstr("'much' is not a limit"));
}

TEST_F(DiffProgramTest, FileThatLacksTheMomentIsNamed) {
  EXPECT_EQ(Run("diff base.jsonl new.jsonl --at oom"), 1);
  EXPECT_THAT(err_, HasSubstr("base.jsonl: no allocation failed in this recording"));
  EXPECT_EQ(Run("diff base.jsonl nothing.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("nothing.gmt"));
}

}  // namespace
}  // namespace gmt::cli
