// Runs the program on stacks of a Python program, with native and Python frames.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One stack, and an allocation with that stack.
constexpr char kFramesLog[] =
    R"log({"kind":"stack","id":1,"frames":[{"function":"cudaMalloc","module":"/x/libcudart.so.13","language":"c++"},)log"
    R"log({"function":"at::_ops::mul_Tensor::call(at::Tensor const&)","module":"/t/libtorch_cpu.so","language":"c++"},)log"
    R"log({"module":"/usr/bin/python3.11","offset":4096},)log"
    R"log({"function":"Net.forward","file":"/home/me/model.py","line":88,"language":"python"},)log"
    R"log({"function":"main","file":"/v/lib/python3.11/site-packages/app/run.py","line":4,"language":"python"}]}
{"kind":"alloc","t_ns":5,"heap":"driver","device":0,"address":4096,"size":2097152,"stack":1}
)log";

class FramesProgramTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    Put("log.jsonl", kFramesLog);
  }
};

TEST_F(FramesProgramTest, ReportShowsTheProgramsLineAndTheOperator) {
  EXPECT_EQ(Run("report log.jsonl"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("Net.forward (model.py:88) > at::_ops::mul_Tensor::call"));
  EXPECT_THAT(out_, HasSubstr("  < main (run.py:4)"));
  EXPECT_THAT(out_, Not(HasSubstr("python3.11+")));
}

TEST_F(FramesProgramTest, RawFramesShowsEveryFrame) {
  EXPECT_EQ(Run("report log.jsonl --raw-frames"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("  < python3.11+0x1000\n"));
}

TEST_F(FramesProgramTest, NotKnownCountsUnnamedNativeFramesWithTheReason) {
  std::string log = Get("log.jsonl");
  const std::string more =
      R"({"module":"/gone/libmodel.so","offset":1},{"module":"/gone/libmodel.so","offset":2},)";
  log.insert(log.find(R"({"function":"Net.forward)"), more);
  Put("log.jsonl", log);
  EXPECT_EQ(Run("report log.jsonl"), 0) << err_;
  // Two frames of the library, one of the interpreter, none of Python. Frames that are folded
  // anyway come last.
  const size_t library =
      out_.find("  2 frames without a name: /gone/libmodel.so is not on this machine\n");
  const size_t interpreter = out_.find("  1 frame without a name: /usr/bin/python3.11 ");
  ASSERT_NE(library, out_.npos) << out_;
  ASSERT_NE(interpreter, out_.npos) << out_;
  EXPECT_LT(library, interpreter);
  EXPECT_EQ(out_.find("without a name", interpreter + 30), out_.npos) << out_;
}

TEST_F(FramesProgramTest, JsonHasEveryFrameInnermostFirst) {
  for (const std::string flags : {"", " --raw-frames"}) {
    const auto frames = RunJson("report log.jsonl --json" + flags)["rows"][0]["frames"];
    ASSERT_EQ(frames.size(), 5u);
    EXPECT_EQ(frames[0]["function"], "cudaMalloc");
    EXPECT_EQ(frames[2]["function"], "python3.11+0x1000");
    EXPECT_EQ(frames[3]["line"], 88);
    EXPECT_EQ(frames[3]["language"], "python");
  }
}

TEST_F(FramesProgramTest, UserRulesTakePrecedence) {
  Put("mine.txt", "own file=*/site-packages/app/*\nlibrary file=*/model.py\n");
  EXPECT_EQ(Run("report log.jsonl --frames-rules mine.txt"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("main (run.py:4) > Net.forward (model.py:88)"));
}

TEST_F(FramesProgramTest, MistakeInTheRulesNamesFileAndLine) {
  Put("mine.txt", "\nown path=*/app/*\n");
  for (const std::string verb :
       {"report log.jsonl", "export --format torch log.jsonl -o out.pickle"}) {
    EXPECT_EQ(Run(verb + " --frames-rules mine.txt"), 1);
    EXPECT_THAT(err_, HasSubstr("--frames-rules: mine.txt:2: 'path' instead of function=, file="));
    EXPECT_EQ(Run(verb + " --frames-rules none.txt"), 1);
    EXPECT_THAT(err_, HasSubstr("none.txt: No such file"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.pickle"));
}

TEST_F(FramesProgramTest, ExportLeavesOutFoldedFramesUnlessRaw) {
  ASSERT_EQ(Run("export --format torch log.jsonl -o folded.pickle"), 0) << err_;
  ASSERT_EQ(Run("export --format torch log.jsonl -o raw.pickle --raw-frames"), 0) << err_;
  EXPECT_THAT(Get("folded.pickle"), HasSubstr("Net.forward"));
  EXPECT_THAT(Get("folded.pickle"), HasSubstr("at::_ops::mul_Tensor::call"));
  EXPECT_THAT(Get("folded.pickle"), Not(HasSubstr("python3.11+")));
  EXPECT_THAT(Get("raw.pickle"), HasSubstr("python3.11+0x1000"));
}

}  // namespace
}  // namespace gmt::cli
