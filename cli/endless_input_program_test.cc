// Input that never ends or never comes: every verb that reads a file refuses it with a message, in
// bounded memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// FILE stands for the input.
const std::vector<std::string> kVerbs = {
    "report FILE",
    "report FILE --json",
    "oom FILE",
    "leaks FILE",
    "ledger FILE",
    "frag FILE",
    "diff FILE log.jsonl",
    "diff log.jsonl FILE",
    "show FILE stack/1",
    "info FILE",
    "cat FILE",
    "cat FILE --json",
    "import FILE -o out.gmt",
    "repair FILE out.gmt",
    "symbolize FILE -o out.gmt",
    "export --format html FILE -o out.html",
    "export --format torch FILE -o out.pickle",
    "export --format pprof FILE -o out.pb.gz",
    "export --format speedscope FILE -o out.json",
    "export --format perfetto FILE -o out.pftrace",
    "export --format heaptrack FILE -o out.heaptrack",
    "export --format csv FILE -o out.csv",
    "export --format gmt --strip-args FILE -o out.gmt",
    "view --no-browser --page FILE log.jsonl",
};

constexpr char kOneEvent[] =
    R"({"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"address":4096,"size":2097152})"
    "\n";

class EndlessInputTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    Put("log.jsonl", kOneEvent);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limits_ = "ulimit -v 4000000; ";  // ends a verb that reads on
#endif
  }

  // Runs every verb at the same time with `input` as its FILE and, if `feeder` is not empty, behind
  // a pipe from it. Calls `check` for each with the verb, its exit code and its message.
  template <typename Check>
  void RunAll(const std::string& input, const std::string& feeder, Check check) {
    std::string script;
    for (size_t i = 0; i < kVerbs.size(); ++i) {
      const std::string verb =
          absl::StrReplaceAll(kVerbs[i], {{"FILE", input}, {"out.", absl::StrCat(i, ".")}});
      absl::StrAppend(&script, "(", limits_, feeder, GMT_PROGRAM " ", verb, " >out.", i, " 2>err.",
                      i, "; echo $? >code.", i, ") & ");
    }
    Put("script", script + "wait");
    const std::string command = absl::StrCat("cd ", folder_.string(), " && sh script </dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
    for (size_t i = 0; i < kVerbs.size(); ++i) {
      SCOPED_TRACE(absl::StrReplaceAll(kVerbs[i], {{"FILE", input}}));
      check(kVerbs[i], Get(absl::StrCat("code.", i)), Get(absl::StrCat("err.", i)));
    }
  }

  void ExpectRefused(const std::string& input, const std::string& why) {
    RunAll(input, "", [&](const std::string&, const std::string& code, const std::string& message) {
      EXPECT_EQ(code, "1\n");
      EXPECT_THAT(message, AllOf(StartsWith("gpumemtrace: "), HasSubstr(why)));
    });
  }
};

TEST_F(EndlessInputTest, DeviceIsRefused) {
  for (const char* device : {"/dev/zero", "/dev/urandom", "/dev/null"})
    ExpectRefused(device, absl::StrCat(device, " is a device; expected a file"));
  // The test's standard input is /dev/null.
  ExpectRefused("/dev/stdin", "/dev/stdin is a device; expected a file");
}

TEST_F(EndlessInputTest, FolderIsRefused) {
  std::filesystem::create_directory(folder_ / "runs");
  ExpectRefused("runs", "runs is a folder");
}

TEST_F(EndlessInputTest, SocketIsRefused) {
  const std::string path = folder_ / "socket";
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ExpectRefused("socket", "socket is a socket; expected a file");
  close(fd);
}

TEST_F(EndlessInputTest, PipeWithoutAWriterIsRefused) {
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  ExpectRefused("fifo", "fifo is a pipe into which no program writes");
}

TEST_F(EndlessInputTest, EndlessPipeOfSomethingElseIsRefused) {
  RunAll("/dev/stdin", "cat /dev/zero | ",
         [&](const std::string& verb, const std::string& code, const std::string& message) {
           EXPECT_EQ(code, "1\n");
           // A recording's beginning may be damaged, and a page has any beginning.
           const bool has_no_head = verb.starts_with("repair") || verb.starts_with("view");
           EXPECT_THAT(message, HasSubstr(has_no_head ? "more than 1 GiB came through this pipe"
                                                      : "expected a recording"));
         });
  EXPECT_EQ(Run("report /dev/stdin", "cat /dev/urandom | "), 1);
  EXPECT_THAT(err_, HasSubstr("expected a recording"));
}

TEST_F(EndlessInputTest, EndlessEventLogIsRefused) {
  EXPECT_EQ(Run("report /dev/stdin", "yes \"$(cat log.jsonl)\" | "), 1);
  EXPECT_THAT(err_, HasSubstr("/dev/stdin: more than 1 GiB came through this pipe"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(EndlessInputTest, EndlessLineIsRefused) {
  Put("long.jsonl", R"({"kind":"mark","name":")");
  std::filesystem::resize_file(folder_ / "long.jsonl", uint64_t{1} << 40);
  EXPECT_EQ(Run("report long.jsonl"), 1);
  EXPECT_THAT(err_, HasSubstr("long.jsonl: line 1 is longer than 1 GiB"));
}
#endif

TEST_F(EndlessInputTest, EndlessRulesAreRefused) {
  for (const char* option : {"--frames-rules", "--categories"}) {
    EXPECT_EQ(Run(absl::StrCat("report log.jsonl ", option, " /dev/zero")), 1);
    EXPECT_THAT(err_, HasSubstr("/dev/zero is longer than 1 MiB"));
  }
}

// ---- What is read from a pipe -------------------------------------------------------------------

TEST_F(EndlessInputTest, PipeIsReadLikeAFile) {
  ASSERT_EQ(Run("import log.jsonl -o run.gmt"), 0) << err_;
  ASSERT_EQ(Run("export --format torch run.gmt -o run.pickle"), 0) << err_;
  for (const char* file : {"log.jsonl", "run.gmt", "run.pickle"}) {
    for (const char* verb : {"report", "oom --json", "cat", "cat --json", "info"}) {
      SCOPED_TRACE(absl::StrCat(verb, " ", file));
      ASSERT_EQ(Run(absl::StrCat(verb, " ", file)), 0) << err_;
      const std::string expected = absl::StrReplaceAll(out_, {{file, "/dev/stdin"}});
      EXPECT_EQ(Run(absl::StrCat(verb, " /dev/stdin"), absl::StrCat("cat ", file, " | ")), 0)
          << err_;
      EXPECT_EQ(out_, expected);
    }
  }
}

TEST_F(EndlessInputTest, PipeIsCopiedLikeAFile) {
  ASSERT_EQ(Run("import log.jsonl -o run.gmt"), 0) << err_;
  const struct {
    const char *verb, *file;
  } copies[] = {{"import FILE -o OUT", "log.jsonl"},
                {"repair FILE OUT", "run.gmt"},
                {"symbolize FILE -o OUT", "run.gmt"},
                {"export --format gmt --strip-args FILE -o OUT", "run.gmt"}};
  for (const auto& [verb, file] : copies) {
    SCOPED_TRACE(verb);
    const auto with = [&](const char* in, const char* out) {
      return absl::StrReplaceAll(verb, {{"FILE", in}, {"OUT", out}}) + " --force";
    };
    ASSERT_EQ(Run(with(file, "of_file.gmt")), 0) << err_;
    EXPECT_EQ(Run(with("/dev/stdin", "of_pipe.gmt"), absl::StrCat("cat ", file, " | ")), 0) << err_;
    EXPECT_EQ(Get("of_pipe.gmt"), Get("of_file.gmt"));
  }
}

}  // namespace
}  // namespace gmt::cli
