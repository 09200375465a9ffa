// A recording and a process of a stranger, whose every string tries to take over the terminal: no
// verb prints a control character, a line break or a direction control that comes from them. The
// page of a running process: viewer/live/live_recording_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/testing/program_fixture.h"
#include "collector/sessions/session_claim.h"
#include "collector/testing/fake_target.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;

// Sets the title, clears the screen, breaks the line, forges a row, turns text round; C1 and DEL.
constexpr char kHostile[] =
    "\\u001b]0;owned\\u0007\\u001b[2J\\r\\n99.9 GiB  99 %  "
    "forged\\u202egpj.exe\\u2028\\u009b31m\\u007f\\t";

// Returns the code points of `text` that a file must not put into it. Line feeds are the answer's
// own.
std::string Forbidden(const std::string& text) {
  std::string found;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::string rest = text.substr(i, 3);
    const bool c1 =
        c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((c < ' ' && c != '\n') || c == 0x7f || c1 || rest == "\u202e" || rest == "\u2028")
      absl::StrAppend(&found, " at ", i, ": ", text.substr(i > 30 ? i - 30 : 0, 60));
  }
  return found;
}

class HostileTextTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    std::ofstream log(folder_ / "hostile.jsonl");
    const auto line = [&](const std::string& text) {
      log << absl::StrReplaceAll(text, {{"EVIL", kHostile}}) << "\n";
    };
    line(
        R"({"kind":"header","schema":"gpumemtrace.events/1","devices":[{"index":0,"name":"GPU EVIL","total_bytes":85899345920}],"argv":["python EVIL","EVIL"],"executable":"/bin/EVIL"})");
    line(
        R"({"kind":"stack","id":1,"frames":[{"function":"f EVIL","file":"f EVIL.py","line":7,"language":"python"},{"function":"g EVIL","module":"lib EVIL.so"}]})");
    for (int step = 0; step < 5; ++step) {
      const int64_t t = 1000 + step * 1000;
      line(absl::StrCat(R"({"kind":"mark","t_ns":)", t, R"(,"name":"step EVIL"})"));
      line(absl::StrCat(R"({"kind":"range_begin","t_ns":)", t + 1, R"(,"name":"range EVIL","id":)",
                        step + 1, "}"));
      line(absl::StrCat(
          R"({"kind":"alloc","t_ns":)", t + 10,
          R"(,"heap":"heap EVIL","memory":"block","address":)", 4096 * (step + 1),
          R"(,"size":1048576,"device":0,"stack":1,"api":"api EVIL","name":"name EVIL"})"));
      line(absl::StrCat(R"({"kind":"range_end","t_ns":)", t + 20, R"(,"id":)", step + 1, "}"));
    }
    line(
        R"({"kind":"alloc","t_ns":9000,"heap":"driver","memory":"device","size":1073741824,"device":0,"stack":1,"result":2,"api":"api EVIL"})");
  }

  void ExpectClean(const std::string& command) {
    SCOPED_TRACE(command);
    Run(command);
    EXPECT_EQ(Forbidden(out_), "");
    EXPECT_EQ(Forbidden(err_), "");
  }
};

TEST_F(HostileTextTest, NoVerbPrintsControlCharactersOfAFile) {
  ASSERT_EQ(Run("import hostile.jsonl -o hostile.gmt"), 0) << err_;
  Put("larger.jsonl",
      absl::StrReplaceAll(Get("hostile.jsonl"), {{"\"size\":1048576", "\"size\":4294967296"}}));
  ASSERT_EQ(Run("import larger.jsonl -o larger.gmt"), 0) << err_;
  for (const std::string file : {"hostile.jsonl", "hostile.gmt"}) {
    for (const char* by :
         {"stack", "function", "file", "category", "layer", "library", "heap", "thread", "stream"})
      ExpectClean(absl::StrCat("report ", file, " --raw-frames --by ", by));
    for (const char* verb : {"oom", "leaks", "ledger", "frag", "info", "cat", "advise",
                             "whatif --expandable-segments", "report --slope hostile.gmt"})
      ExpectClean(absl::StrCat(verb, " ", file));
    for (const char* table : {"memory", "stacks", "frames", "marks", "ranges", "recordings"}) {
      for (const char* form : {"", "--box", "--csv"}) {
        ExpectClean(absl::StrCat("query ", file, " 'SELECT * FROM ", table, "' ", form));
        EXPECT_THAT(out_, HasSubstr("]0;owned")) << "otherwise nothing was tested";
      }
    }
    for (const char* id :
         {"stack/1", "step/1", "event/3", "block/0x1000", "heap/driver", "nothing"})
      ExpectClean(absl::StrCat("show ", file, " ", id));
    ExpectClean(absl::StrCat("diff ", file, " hostile.gmt"));
    ExpectClean(absl::StrCat("diff ", file, " hostile.gmt --markdown"));
    for (const char* from : {"recordings", "digests"}) {
      SCOPED_TRACE(from);
      ExpectClean(absl::StrCat("ranks ", file, " larger.gmt"));
      EXPECT_THAT(out_, HasSubstr("GiB by f \\x1b]0;owned"));
    }
    ExpectClean(absl::StrCat("export --format pprof --force ", file, " -o out.pb.gz"));
    ExpectClean(absl::StrCat("export --format torch --force ", file, " -o out.pickle"));
    for (const char* format : {"folded", "speedscope", "csv", "jsonl", "chrome", "heaptrack"}) {
      ExpectClean(absl::StrCat("export --format ", format, " --force ", file, " -o out.text"));
      EXPECT_EQ(Forbidden(Get("out.text")), "") << format;
    }
    ExpectClean(absl::StrCat("export --format perfetto --force ", file, " -o out.pftrace"));
  }
  ExpectClean("symbolize hostile.gmt -o named.gmt");
  ExpectClean("repair hostile.gmt repaired.gmt");
}

// Replaces an argument in the session of a process.
void ReplaceArgument(collector::FakeTarget& target, const std::string& text,
                     const std::string& by) {
  ASSERT_EQ(text.size(), by.size());
  const auto bytes = std::filesystem::file_size(target.path());
  void* found = memmem(&target.header(), bytes, text.data(), text.size());
  ASSERT_NE(found, nullptr);
  memcpy(found, by.data(), by.size());
}

TEST_F(HostileTextTest, NoVerbPrintsControlCharactersOfAProcess) {
  collector::FakeTarget one, other;
  for (collector::FakeTarget* target : {&one, &other})
    ReplaceArgument(*target, "train.py", "\x1b[2J\nx\x7f\t");
  const auto claim = collector::SessionClaim::Take(one.fd());
  const auto other_claim = collector::SessionClaim::Take(other.fd());
  // Sessions are searched for in the directory of the last one.
  std::filesystem::rename(one.path(),
                          other.directory() / std::filesystem::path(one.path()).filename());
  ExpectClean("list");
  EXPECT_THAT(out_, HasSubstr("python \\x1b[2J\\nx\\x7f\\t"));
  ExpectClean("view --live --no-browser");
  EXPECT_THAT(err_, HasSubstr("python \\x1b[2J\\nx\\x7f\\t"));
}

TEST_F(HostileTextTest, TextShowsTheEscapesAndJsonKeepsTheData) {
  EXPECT_EQ(Run("report hostile.jsonl --by function --raw-frames"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\\x1b]0;owned"));
  EXPECT_EQ(Run("report hostile.jsonl --json"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\\u001b]0;owned\\u0007"));
}

}  // namespace
}  // namespace gmt::cli
