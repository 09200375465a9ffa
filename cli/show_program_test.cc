// Runs `gpumemtrace show` as a program.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "answers/show/page.h"
#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Two steps of a loop: a block that lives for one step, one that stays, and one of a backward pass.
constexpr char kShowLog[] =
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1700000000000000000,"devices":[{"index":0,"name":"H100","total_bytes":1048576}]}
{"kind":"stack","id":1,"frames":[{"function":"at::mm","language":"c++"},{"function":"forward","file":"FILE","line":2,"language":"python"},{"function":"main","file":"FILE","line":4,"language":"python"}]}
{"kind":"stack","id":2,"frames":[{"function":"keep","file":"/none/keep.py","line":7,"language":"python"}]}
{"kind":"mark","t_ns":0,"name":"step","index":0}
{"kind":"alloc","t_ns":1000000,"heap":"driver","memory":"device","device":0,"address":4096,"size":65536,"stack":2}
{"kind":"range_begin","t_ns":1500000,"name":"forward"}
{"kind":"alloc","t_ns":2000000,"heap":"pytorch","device":0,"address":4096,"size":1024,"requested":1000,"stack":1,"stream":7,"thread":3}
{"kind":"range_end","t_ns":2500000,"name":"forward"}
{"kind":"alloc","t_ns":3000000,"heap":"pytorch","device":0,"address":8192,"size":512,"stack":2,"stream":7,"thread":3}
{"kind":"free","t_ns":4000000,"heap":"pytorch","device":0,"address":4096,"size":1024}
{"kind":"mark","t_ns":5000000,"name":"step","index":1}
{"kind":"alloc","t_ns":6000000,"heap":"pytorch","device":0,"address":4096,"size":1024,"stack":1,"forward_stack":2,"stream":7,"thread":3}
{"kind":"alloc_failed","t_ns":7000000,"heap":"pytorch","device":0,"size":4096,"stack":1}
{"kind":"snapshot","t_ns":7000000,"name":"oom-1"}
{"kind":"mark","t_ns":8000000,"name":"step","index":2}
)";

class ShowTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    source_ = folder_ / "model.py";
    std::string log = kShowLog;
    for (size_t at; (at = log.find("FILE")) != std::string::npos;) log.replace(at, 4, source_);
    Put("l.jsonl", log);
  }
  void PutSource(time_t changed) {
    Put("model.py", "def forward(x):\n    return x @ w\n\nforward(torch.ones(3))\n");
    const timespec times[2] = {{changed, 0}, {changed, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, source_.c_str(), times, 0), 0);
  }
  std::string Show(const std::string& id, const std::string& options = "") {
    EXPECT_EQ(Run("show l.jsonl '" + id + "' --width 100 " + options), 0) << err_;
    EXPECT_LE(std::count(out_.begin(), out_.end(), '\n'), 25) << id;
    return out_;
  }
  // Returns the ID of a report row whose stack contains a function.
  std::string IdOf(const std::string& function) {
    const nlohmann::json report = RunJson("report l.jsonl --at end --json");
    for (const auto& row : report["rows"]) {
      for (const auto& frame : row["frames"]) {
        if (frame["function"] == function) {
          const std::string id = row["id"];
          return id.substr(0, id.find('+'));
        }
      }
    }
    return "";
  }

  std::string source_;
};

TEST_F(ShowTest, StackHeadlineNamesTheStack) {
  const std::string id = IdOf("forward");
  const std::string text = Show(id);
  EXPECT_THAT(text,
              StartsWith(id + " is forward (model.py:2) > at::mm: 1.00 KiB at most, in 1 piece"));
  EXPECT_THAT(text, HasSubstr("2 allocations of 2.00 KiB in total, 1 free; 1 still held at the "
                              "end"));
  EXPECT_THAT(text, HasSubstr("stream 0x7"));
  EXPECT_THAT(text, HasSubstr("\ngpumemtrace report l.jsonl --at step:1\n"));
}

TEST_F(ShowTest, SourceLineIsShownIfTheFileExists) {
  PutSource(1'600'000'000);
  const std::string text = Show(IdOf("forward"));
  EXPECT_THAT(text, HasSubstr("     1   def forward(x):\n"));
  EXPECT_THAT(text, HasSubstr("     2 >     return x @ w\n"));
  EXPECT_THAT(text, HasSubstr("< main (model.py:4)   forward(torch.ones(3))\n"));
}

TEST_F(ShowTest, ChangedSourceIsNotShown) {
  PutSource(1'700'000'001);
  EXPECT_THAT(Show(IdOf("forward")), Not(HasSubstr("return x @ w")));
}

TEST_F(ShowTest, BackwardStackWithItsForwardStackHasItsOwnId) {
  const std::string id = IdOf("forward");
  const std::string text = Show(id);
  const size_t at = text.find(id + "+");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string both = text.substr(at, text.find('\n', at) - at);
  EXPECT_THAT(Show(both), AllOf(StartsWith(both + " is forward"), HasSubstr("1 allocation of"),
                                HasSubstr("Stack of the forward pass\n    keep (keep.py:7)")));
}

TEST_F(ShowTest, StepShowsWhatGrew) {
  EXPECT_THAT(Show("step/1"), AllOf(StartsWith("step/1: peak 1.50 KiB on GPU 0"),
                                    HasSubstr("+512 B       +1  pytorch keep (keep.py:7)")));
  EXPECT_THAT(Show("step/2"), HasSubstr("Held at its end, compared with the end of the previous "
                                        "step"));
}

TEST_F(ShowTest, SnapshotShowsTheFailedAllocation) {
  EXPECT_THAT(
      Show("snapshot/oom-1"),
      AllOf(StartsWith("snapshot/oom-1, taken at 7.00 ms: GPU 0 held 64.0 KiB of 1.00 MiB (6 %)"),
            HasSubstr("4.00 KiB on GPU 0: forward (model.py:2) > at::mm"),
            HasSubstr("gpumemtrace oom l.jsonl\n")));
}

TEST_F(ShowTest, EventLinksToItsMatchingEvent) {
  EXPECT_THAT(Show("event/2"),
              AllOf(StartsWith("event/2 allocated 1.00 KiB of pytorch on GPU 0"),
                    HasSubstr("1000 B requested"), HasSubstr("freed at 4.00 ms: event/4")));
  EXPECT_THAT(Show("event/4"), StartsWith("event/4 freed 1.00 KiB"));
}

TEST_F(ShowTest, AddressHasOwners) {
  for (const char* id : {"block/0x1000", "block/4096", "0x1000"}) {
    EXPECT_THAT(Show(id), AllOf(StartsWith("block/0x1000 is in 1.00 KiB of pytorch on GPU 0"),
                                HasSubstr("Blocks at this address"),
                                HasSubstr("Driver memory at this "
                                          "address")));
  }
}

TEST_F(ShowTest, AddressWithoutMemoryNamesItsNeighbours) {
  EXPECT_EQ(Run("show l.jsonl 0x10"), 1);
  EXPECT_THAT(err_, HasSubstr("no recorded memory contains 0x10; above it is"));
}

TEST_F(ShowTest, RangesAndMarksAreFoundByName) {
  EXPECT_THAT(Show("forward"), StartsWith("range forward occurred 1 time, lasting 1.00 ms "
                                          "(median)"));
  EXPECT_THAT(Show("mark/step"), StartsWith("mark step occurred 3 times, every 3.00 ms (median)"));
}

TEST_F(ShowTest, DevicesAndGroupsHaveALife) {
  EXPECT_THAT(Show("device/0"), StartsWith("GPU 0 (H100) held 64.0 KiB of 1.00 MiB (6 %) at most"));
  for (const char* id :
       {"heap/pytorch", "thread/3", "stream/0x7", "size/1024", "function/keep (keep.py)",
        "file//none/keep.py", "library/blocks of pytorch"}) {
    EXPECT_THAT(Show(id), StartsWith(std::string(id) + " held ")) << id;
  }
}

TEST_F(ShowTest, JsonHasTheSameContent) {
  const nlohmann::json answer = RunJson("show l.jsonl heap/pytorch --json");
  EXPECT_THAT(out_, StartsWith("{\n  \"schema\": \"gpumemtrace.show/1\""));
  EXPECT_EQ(answer["kind"], "heap");
  EXPECT_EQ(answer["life"]["peak_bytes"], 1536);
  EXPECT_EQ(answer["life"]["allocations"], 3);
  EXPECT_EQ(answer["life"]["steps"].size(), 2u);
  EXPECT_EQ(answer["next"].size(), 2u);
  for (const char* id :
       {"step/1", "snapshot/oom-1", "event/2", "block/0x1000", "forward", "device/0"}) {
    EXPECT_EQ(RunJson("show l.jsonl " + std::string(id) + " --json")["schema"],
              "gpumemtrace.show/1");
  }
}

TEST_F(ShowTest, UnknownIdListsWhatExists) {
  EXPECT_EQ(Run("show l.jsonl thread/9"), 1);
  EXPECT_EQ(err_, "gpumemtrace: l.jsonl: there is no thread/9; it has thread/3, thread/unknown\n");
  EXPECT_EQ(Run("show l.jsonl step/3"), 1);
  EXPECT_THAT(err_, HasSubstr("there is no step/3; it has step/1 to step/2"));
  EXPECT_EQ(Run("show l.jsonl leak/1"), 1);
  EXPECT_THAT(err_, HasSubstr("there is no leak/1; the recording has no leak"));
  EXPECT_EQ(Run("show l.jsonl epoch"), 1);
  EXPECT_THAT(err_, HasSubstr("'epoch' is neither an ID nor the name of a range or mark"));
}

TEST_F(ShowTest, MalformedIdIsWrongUsage) {
  EXPECT_EQ(Run("show l.jsonl stack/seven"), 2);
  EXPECT_THAT(err_, HasSubstr("'stack/seven' is no id; write stack/7"));
}

TEST_F(ShowTest, EmptyRecordingIsReported) {
  Put("l.jsonl", R"({"kind":"header","schema":"gpumemtrace.events/1","devices":[{"index":0}]})"
                 "\n");
  EXPECT_EQ(Show("device/0"), "GPU 0: no memory was allocated on it\n\ngpumemtrace info l.jsonl\n");
  EXPECT_EQ(Run("show l.jsonl heap/pytorch"), 1);
  EXPECT_THAT(err_, HasSubstr("the recording has no heap"));
  EXPECT_EQ(Run("show l.jsonl step/1"), 1);
  EXPECT_THAT(err_, HasSubstr("has no steps of a training loop"));
}

TEST(SparklineTest, MaximumIsFullAndNonzeroIsVisible) {
  EXPECT_EQ(answers::Sparkline({0, 1, 500, 1000}, false), " .=@");
  EXPECT_EQ(answers::Sparkline({0, 1, 500, 1000}, true), " ▁▄█");
  EXPECT_EQ(answers::Sparkline({0, 0}, true), "  ");
  EXPECT_EQ(answers::Sparkline({}, true), "");
  EXPECT_EQ(answers::Sparkline({UINT64_MAX}, false), "@");
}

TEST_F(ShowTest, BlockAndEventNameTheTensorAndWhyItIsAlive) {
  Put("roles.jsonl",
      R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1}
{"kind":"stack","id":1,"frames":[{"function":"forward","file":"m.py","line":2,"language":"python"}]}
{"kind":"alloc","t_ns":1,"heap":"pytorch","device":0,"address":8192,"size":512,"stack":1,"dtype":"float32","shape":"[8, 16]"}
{"kind":"role","t_ns":2,"heap":"pytorch","device":0,"address":8192,"role":["saved"],"forward_stack":1,"node":"MmBackward0"}
)");
  for (const char* id : {"block/0x2000", "event/1"}) {
    ASSERT_EQ(Run(std::string("show roles.jsonl ") + id), 0) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("float32 [8, 16]"),
                            HasSubstr("saved for backward by MmBackward0 (m.py:2)")));
  }
  const nlohmann::json memory = RunJson("show --json roles.jsonl event/1")["memory"];
  EXPECT_EQ(memory["shape"], "[8, 16]");
  EXPECT_EQ(memory["alive"]["reason"], "saved");
}

}  // namespace
}  // namespace gmt::cli
