// Runs the built program: text, JSON, exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr char kLog[] =
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1,"devices":[{"index":0,"name":"H100","total_bytes":85899345920}],"argv":["python","train.py"],"libraries":{"torch":"2.11.0"}}
{"kind":"stack","id":7,"frames":[{"function":"forward","file":"model.py","line":88,"language":"python"}]}
{"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"address":4096,"size":2097152,"stack":7,"thread":11,"api":"cudaMalloc"}
{"kind":"free","t_ns":99,"heap":"driver","device":0,"address":4096,"thread":11,"api":"cudaFree"}
{"kind":"free_done","t_ns":100,"heap":"driver","device":0,"address":4096,"result":1}
{"kind":"alloc_failed","t_ns":101,"heap":"driver","size":99,"result":2}
{"kind":"mark","t_ns":102,"name":"step","index":1}
{"kind":"alloc","t_ns":103,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":2097152,"requested":2000000,"stack":7,"dtype":"float32","shape":"[500, 1000]"}
{"kind":"role","t_ns":105,"heap":"pytorch","device":0,"address":4096,"role":["parameter","saved"],"forward_stack":7,"node":"MmBackward0"}
{"kind":"role","t_ns":106,"heap":"pytorch","device":0,"address":4096,"role":[]}
)";

class ProgramTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    Put("log.jsonl", kLog);
  }
  void MakeRecording() { ASSERT_EQ(Run("import log.jsonl -o run.gmt"), 0) << err_; }
};

// ---- Usage --------------------------------------------------------------------------------------

TEST_F(ProgramTest, HelpListsTheVerbs) {
  EXPECT_EQ(Run("--help"), 0);
  EXPECT_THAT(out_, HasSubstr("import "));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(ProgramTest, HelpOfAVerbNamesTheProgram) {
  EXPECT_EQ(Run("cat --help"), 0);
  EXPECT_THAT(out_, HasSubstr("gpumemtrace cat"));
}

TEST_F(ProgramTest, ArgumentMayBeTheNameOfAnotherVerb) {
  EXPECT_EQ(Run("info report"), 1);
  EXPECT_THAT(err_, HasSubstr("there is no file report"));
}

TEST_F(ProgramTest, VersionIsOneLine) {
  EXPECT_EQ(Run("--version"), 0);
  EXPECT_THAT(out_, StartsWith("gpumemtrace "));
}

TEST_F(ProgramTest, NoVerbIsWrongUsage) {
  EXPECT_EQ(Run(""), 2);
  EXPECT_THAT(err_, StartsWith("gpumemtrace: a verb is missing\nSee: gpumemtrace --help\n"));
}

TEST_F(ProgramTest, UnknownVerbIsWrongUsage) {
  EXPECT_EQ(Run("explode"), 2);
  EXPECT_THAT(err_, HasSubstr("there is no verb 'explode'"));
}

TEST_F(ProgramTest, UnknownOptionIsWrongUsage) {
  EXPECT_EQ(Run("cat log.jsonl --fast"), 2);
  EXPECT_THAT(err_, HasSubstr("there is no option '--fast'\nSee: gpumemtrace cat --help"));
}

TEST_F(ProgramTest, DeviceThatCannotBeTheNumberOfAGpuIsWrongUsage) {
  for (const char* verb : {"report log.jsonl", "ledger log.jsonl", "frag log.jsonl",
                           "leaks log.jsonl", "whatif log.jsonl", "advise log.jsonl",
                           "diff log.jsonl log.jsonl", "export log.jsonl --format csv -o x.csv"}) {
    for (const char* number : {"-1", "-3", "4294967295", "4294967296", "one"}) {
      EXPECT_EQ(Run(absl::StrCat(verb, " --device ", number)), 2) << verb << " " << number;
      EXPECT_THAT(err_, HasSubstr(absl::StrCat("'", number, "' is not the number of a GPU")));
    }
  }
  EXPECT_EQ(Run("report log.jsonl --device 0"), 0) << err_;
}

TEST_F(ProgramTest, MissingArgumentIsWrongUsage) { EXPECT_EQ(Run("cat"), 2); }
TEST_F(ProgramTest, ControlBytesAreNotPrinted) {
  EXPECT_EQ(Run("info $(printf 'a\\033[31mb').gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("a\\x1b[31mb.gmt"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ProgramTest, OutOfMemoryIsReported) {
  std::string log = kLog;
  for (int i = 0; i < 100000; ++i) {
    absl::StrAppend(&log, R"({"kind":"alloc","heap":"driver","memory":"device","t_ns":)", 200 + i,
                    R"(,"address":)", (i + 10) * 4096, R"(,"size":4096})", "\n");
  }
  Put("long.jsonl", log);
  ASSERT_EQ(Run("import long.jsonl -o long.gmt"), 0) << err_;
  int said = 0, code = 1;
  // With the smallest limits even the loader fails.
  for (int mib = 24; code != 0 && mib < 4096; mib += 8) {
    limits_ = absl::StrCat("ulimit -v ", mib << 10, "; ");
    code = Run("leaks long.gmt");
    const bool is_loaders = code == 127;
    if (code == 0 || is_loaders) continue;
    EXPECT_EQ(code, 1) << mib << " MiB: " << err_;
    EXPECT_THAT(err_, StartsWith("gpumemtrace: out of memory"));
    ++said;
  }
  EXPECT_EQ(code, 0);
  EXPECT_GT(said, 0);
}
#endif

TEST_F(ProgramTest, SurplusArgumentIsWrongUsage) { EXPECT_EQ(Run("cat log.jsonl log.jsonl"), 2); }
TEST_F(ProgramTest, UnknownColorIsWrongUsage) { EXPECT_EQ(Run("info log.jsonl --color blue"), 2); }

TEST_F(ProgramTest, FullDiskUnderStandardOutputIsAnError) {
  const std::string command =
      std::string(GMT_PROGRAM " info ") + (folder_ / "log.jsonl").string() + " >/dev/full 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

TEST_F(ProgramTest, ClosedPipeEndsTheProgramQuietly) {
  std::string log;
  for (int n = 0; n < 50'000; ++n) log += "{\"kind\":\"free\"}\n";
  Put("long.jsonl", log);
  const std::string command =
      "cd " + folder_.string() + " && " GMT_PROGRAM " cat long.jsonl 2>err | head -1 >out";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(Get("err"), IsEmpty());
}

TEST_F(ProgramTest, ColorsAreOffInPipesUnlessForced) {
  Run("info log.jsonl");
  EXPECT_EQ(out_.find('\x1b'), std::string::npos);
  Run("info log.jsonl --color always");
  EXPECT_NE(out_.find('\x1b'), std::string::npos);
}

// ---- import -------------------------------------------------------------------------------------

TEST_F(ProgramTest, ImportedLogIsPrintedUnchanged) {
  MakeRecording();
  ASSERT_EQ(Run("cat --json run.gmt"), 0);
  std::istringstream was(kLog), is(out_);
  std::string expected, actual;
  while (std::getline(was, expected)) {
    ASSERT_TRUE(std::getline(is, actual));
    EXPECT_EQ(json::parse(actual), json::parse(expected));
  }
  EXPECT_FALSE(std::getline(is, actual));
}

TEST_F(ProgramTest, PrintedLogCanBeImportedAgain) {
  MakeRecording();
  Run("cat --json run.gmt");
  const std::string printed = out_;
  Put("again.jsonl", printed);
  ASSERT_EQ(Run("import again.jsonl -o again.gmt"), 0);
  Run("cat --json again.gmt");
  EXPECT_EQ(out_, printed);
}

TEST_F(ProgramTest, ExistingOutputIsRefusedWithoutForce) {
  Put("run.gmt", "precious");
  EXPECT_EQ(Run("import log.jsonl -o run.gmt"), 1);
  EXPECT_EQ(err_, "gpumemtrace: run.gmt exists already. Overwrite it with: --force\n");
  EXPECT_EQ(Get("run.gmt"), "precious");
  EXPECT_EQ(Run("import log.jsonl -o run.gmt --force"), 0);
  EXPECT_NE(Get("run.gmt"), "precious");
}

TEST_F(ProgramTest, FailedImportLeavesNoFilesAndOverwritesNothing) {
  Put("bad.jsonl", "{\"kind\":\"free\"}\n{\"kind\":\"alloc\",\"size\":-1}\n");
  Put("run.gmt", "precious");
  EXPECT_EQ(Run("import bad.jsonl -o run.gmt --force"), 1);
  EXPECT_THAT(err_, HasSubstr("bad.jsonl: line 2 \"size\" must be a whole number"));
  EXPECT_EQ(Get("run.gmt"), "precious");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(ProgramTest, ImportOfAnotherFormatNamesTheSupportedOnes) {
  Put("x.txt", "hello");
  EXPECT_EQ(Run("import x.txt -o run.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("x.txt is text; expected"));
}

TEST_F(ProgramTest, ImportOfARecordingIsRefused) {
  MakeRecording();
  EXPECT_EQ(Run("import run.gmt -o again.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("run.gmt is a recording already"));
}

// {"segments": [], "device_traces": [[{"action": "snapshot"}]]}
constexpr char kSnapshot[] =
    "\x80\x02}(U\x08segments]U\x0d"
    "device_traces]](}U\x06"
    "actionU\x08snapshotseau.";

TEST_F(ProgramTest, ImportOfASnapshotPrintsASummary) {
  Put("x.pickle", kSnapshot);
  ASSERT_EQ(Run("import x.pickle -o run.gmt"), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("x.pickle: 1 event of 1 device, 0 annotations, 0 segments with 0 "
                              "blocks in use"));
  ASSERT_EQ(Run("info run.gmt"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("imported from: torch snapshot"));
}

TEST_F(ProgramTest, ReadingVerbsAcceptSnapshots) {
  Put("x.pickle", kSnapshot);
  ASSERT_EQ(Run("cat x.pickle --json"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr(R"("action":"snapshot")"));
}

TEST_F(ProgramTest, ASnapshotThatWouldRunCodeIsRefused) {
  Put("x.pickle",
      "\x80\x02"
      "cos\nsystem\nU\x02ls\x85R.");
  EXPECT_EQ(Run("import x.pickle -o run.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("x.pickle: byte 2: opcode GLOBAL would run code"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run.gmt"));
}

TEST_F(ProgramTest, ImportWithoutOutputIsWrongUsage) { EXPECT_EQ(Run("import log.jsonl"), 2); }

// ---- cat and info -------------------------------------------------------------------------------

TEST_F(ProgramTest, LogAndItsRecordingPrintTheSame) {
  MakeRecording();
  Run("cat run.gmt");
  const std::string recording = out_;
  Run("cat log.jsonl");
  EXPECT_EQ(out_, recording);
}

TEST_F(ProgramTest, CatPrintsOneEventPerLine) {
  Run("cat log.jsonl");
  EXPECT_THAT(out_, HasSubstr("0.000000012  alloc "));
  EXPECT_THAT(out_, HasSubstr("size 2.00 MiB"));
  EXPECT_THAT(out_, HasSubstr("cudaMalloc"));
}

TEST_F(ProgramTest, CatPrintsRoles) {
  Run("cat log.jsonl");
  EXPECT_THAT(out_, HasSubstr("float32  [500, 1000]\n"));
  EXPECT_THAT(out_, HasSubstr("  size 2.00 MiB  parameter+saved  forward_stack/"));
  EXPECT_THAT(out_, HasSubstr("  MmBackward0\n"));
  EXPECT_THAT(out_, HasSubstr("  size 2.00 MiB  no role\n"));
}

TEST_F(ProgramTest, GpuThatTheRecordingDoesNotHaveIsAnError) {
  for (const char* verb : {"ledger", "leaks", "advise"}) {
    EXPECT_EQ(Run(absl::StrCat(verb, " log.jsonl --device 5")), 1) << verb;
    EXPECT_THAT(err_, HasSubstr("no GPU 5; it has: 0")) << verb;
  }
}

TEST_F(ProgramTest, CatPrintsWhatASampleKnows) {
  Put("samples.jsonl", std::string(kLog) +
                           R"({"kind":"sample","t_ns":107,"device":0,"free_bytes":1048576}
{"kind":"sample","t_ns":108,"device":0,"used_bytes":1048576,"total_bytes":4194304}
)");
  EXPECT_EQ(Run("cat samples.jsonl"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("free 1.00 MiB"));
  EXPECT_THAT(out_, HasSubstr("used 1.00 MiB of 4.00 MiB"));
  EXPECT_THAT(out_, testing::Not(HasSubstr("used 0 B")));
}

TEST_F(ProgramTest, InfoCountsEvents) {
  MakeRecording();
  const json info = RunJson("info --json run.gmt");
  EXPECT_EQ(info["schema"], "gpumemtrace.info/1");
  EXPECT_EQ(info["complete"], true);
  EXPECT_EQ(
      info["events"],
      json::parse(R"({"alloc":2,"free":1,"free_failed":1,"alloc_failed":1,"role":2,"other":1})"));
  EXPECT_EQ(info["duration_ns"], 106);
}

TEST_F(ProgramTest, InfoHasTheKeysThatCallersRelyOn) {
  const json info = RunJson("info --json log.jsonl");
  for (const char* key : {"file", "complete", "target", "duration_ns", "events", "losses",
                          "devices", "heaps", "snapshots", "libraries", "sources"}) {
    EXPECT_TRUE(info.contains(key)) << key;
  }
  for (const char* key : {"written", "delivered", "overrun", "holes", "abandoned", "backlog"}) {
    EXPECT_TRUE(info["losses"].contains(key)) << key;
  }
  EXPECT_EQ(info["target"]["argv"], json({"python", "train.py"}));
  EXPECT_EQ(info["libraries"]["torch"], "2.11.0");
  EXPECT_EQ(info["devices"][0]["total_bytes"], 85899345920);
}

TEST_F(ProgramTest, SchemaIsTheFirstKey) {
  Run("info --json log.jsonl");
  EXPECT_THAT(out_, StartsWith("{\n  \"schema\": \"gpumemtrace.info/1\""));
}

TEST_F(ProgramTest, InfoReportsLossesThatDoNotAddUp) {
  Put("l.jsonl", R"({"kind":"losses","written":10,"delivered":3})");
  Run("info l.jsonl");
  EXPECT_THAT(out_, HasSubstr("the counters contradict each other: 10 written, but 3 delivered"));
}

TEST_F(ProgramTest, MissingFileIsNamed) {
  EXPECT_EQ(Run("info nowhere.gmt"), 1);
  EXPECT_EQ(
      err_,
      "gpumemtrace: there is no file nowhere.gmt. Record it with: gpumemtrace run -o nowhere.gmt "
      "-- COMMAND\n");
}

// ---- repair -------------------------------------------------------------------------------------

TEST_F(ProgramTest, TruncatedRecordingCanBeReadAndRepaired) {
  MakeRecording();
  const std::string whole = Get("run.gmt");
  Put("cut.gmt", whole.substr(0, whole.size() - 5));
  EXPECT_EQ(RunJson("info --json cut.gmt")["complete"], false);
  EXPECT_THAT(err_, HasSubstr("gpumemtrace: cut.gmt has no end"));
  EXPECT_EQ(Run("repair cut.gmt fixed.gmt"), 0);
  EXPECT_EQ(RunJson("info --json fixed.gmt")["complete"], true);
}

TEST_F(ProgramTest, RepairPrintsWhatWasKeptAndLost) {
  MakeRecording();
  std::string bytes = Get("run.gmt");
  bytes[bytes.find("GMTCHUNK", bytes.find("GMTCHUNK") + 1) + 12] ^= 1;
  Put("bad.gmt", bytes + "garbage");
  ASSERT_EQ(Run("repair bad.gmt fixed.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("fixed.gmt: complete; "));
  EXPECT_THAT(out_, HasSubstr("  lost  "));
  EXPECT_THAT(out_, HasSubstr("(CRC32C)"));
  EXPECT_THAT(out_, HasSubstr("  dropped  7 B after its end"));
  const json repaired = RunJson("repair bad.gmt again.gmt --json");
  EXPECT_EQ(repaired["schema"], "gpumemtrace.repair/1");
  EXPECT_EQ(repaired["was_whole"], false);
  EXPECT_EQ(repaired["lost"].size(), 1u);
  EXPECT_EQ(repaired["lost"][0]["bytes"], repaired["bytes_lost"]);
  EXPECT_EQ(repaired["bytes_behind_the_end"], 7);
}

TEST_F(ProgramTest, RepairOfAnUndamagedFileIsACopy) {
  MakeRecording();
  ASSERT_EQ(Run("repair run.gmt copy.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("copy.gmt: a copy, because run.gmt is undamaged; "));
  EXPECT_EQ(Get("copy.gmt"), Get("run.gmt"));
}

TEST_F(ProgramTest, RepairRefusesAnExistingOutputAndAnInputWithoutChunks) {
  MakeRecording();
  Put("precious.gmt", "precious");
  EXPECT_EQ(Run("repair run.gmt precious.gmt"), 1);
  EXPECT_EQ(Get("precious.gmt"), "precious");
  EXPECT_EQ(Run("repair run.gmt run.gmt"), 1);
  EXPECT_EQ(Run("repair precious.gmt other.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("there is no intact chunk to recover"));
  EXPECT_FALSE(fs::exists(folder_ / "other.gmt"));
  EXPECT_EQ(Run("repair precious.gmt precious.gmt --force"), 1);
  EXPECT_EQ(Get("precious.gmt"), "precious");
}

TEST_F(ProgramTest, DamageIsReportedWithTheRepairCommand) {
  MakeRecording();
  std::string bytes = Get("run.gmt");
  bytes[bytes.find("GMTCHUNK", bytes.find("GMTCHUNK") + 1) + 12] ^= 1;
  Put("bad.gmt", bytes);
  EXPECT_EQ(Run("info bad.gmt"), 0);
  EXPECT_THAT(err_, HasSubstr("is damaged (CRC32C)"));
  EXPECT_THAT(err_, HasSubstr("Repair a copy with: gpumemtrace repair bad.gmt OUT.gmt"));
}

TEST_F(ProgramTest, PreloadPathFollowsTheEnvironment) {
  Put("libgpumemtrace.so", "");
  setenv("GPUMEMTRACE_LIBRARY", (folder_ / "libgpumemtrace.so").c_str(), 1);
  EXPECT_EQ(Run("preload-path"), 0);
  unsetenv("GPUMEMTRACE_LIBRARY");
  EXPECT_EQ(out_, fs::canonical(folder_ / "libgpumemtrace.so").string() + "\n");
}

}  // namespace
}  // namespace gmt::cli
