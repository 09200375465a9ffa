// Runs the program on a recording whose modules are stripped, missing, or on another machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/testing/program_fixture.h"
#include "symbols/testing/sample_library.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class SymbolizeTest : public ProgramFixture {
 protected:
  // run.gmt: one allocation with a frame in a copy of the stripped library, lib/sample.so, one in a
  // module that does not exist, and one of Python.
  void SetUp() override {
    ProgramFixture::SetUp();
    fs::create_directory(folder_ / "lib");
    fs::copy_file(Built("stripped/sample.so"), Library());
    Record("log.jsonl", "run.gmt");
  }
  void Record(const std::string& log, const std::string& recording) {
    const std::string build_id = absl::BytesToHexString(sample_.key().build_id);
    Put(log, absl::StrCat(R"({"kind":"stack","id":1,"frames":[)", R"({"module":")",
                          Library().string(), R"(","build_id":")", build_id, R"(","offset":)",
                          sample_.Probe("sample_inline_probe"), R"(,"return_address":true},)",
                          R"({"module":"/gone/libgone.so","build_id":"abcd","offset":4660},)",
                          R"({"function":"main","file":"t.py","line":3,"language":"python"}]})"
                          "\n",
                          R"({"kind":"alloc","t_ns":5,"heap":"driver","device":0,"address":4096,)",
                          R"("size":512,"stack":1})"
                          "\n"));
    ASSERT_EQ(Run("import " + log + " -o " + recording), 0) << err_;
  }

  static fs::path Built(const std::string& name) { return fs::path(GMT_SYMBOLS_TESTDATA) / name; }
  fs::path Library() const { return folder_ / "lib" / "sample.so"; }
  // Copies the debug file below a directory, where a distribution's package would have it.
  void PutDebugFile(const std::string& directory) {
    const std::string hex = absl::BytesToHexString(sample_.key().build_id);
    const fs::path path = folder_ / directory / "usr/lib/debug/.build-id" / hex.substr(0, 2) /
                          (hex.substr(2) + ".debug");
    fs::create_directories(path.parent_path());
    fs::copy_file(Built("linked/.debug/sample.debug"), path);
  }
  // Returns the names in the file itself: one line per function of the first stack.
  std::vector<std::string> Names(const std::string& recording) {
    EXPECT_EQ(Run("cat --json " + recording), 0) << err_;
    const std::string line = out_.substr(out_.find(R"({"kind":"stack")"));
    const auto stack = nlohmann::json::parse(line.substr(0, line.find('\n')));
    std::vector<std::string> names;
    for (const auto& frame : stack["frames"]) {
      names.push_back(frame.value("function", "-") + ":" + std::to_string(frame.value("line", 0)));
    }
    return names;
  }

  const symbols::SampleLibrary sample_{"stripped"};
  const std::vector<std::string> whole_ = {
      "sample::Innermost():15", "sample::Middle():20",
      "sample::Holder<char const*, 7ul>::Probe(char const* const&):26", "-:0", "main:3"};
};

TEST_F(SymbolizeTest, FirstLineHasTheNumberOfNamedFrames) {
  PutDebugFile("unpacked");
  ASSERT_EQ(Run("symbolize run.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("1 of 2 frames named (was 0)\n"));
  EXPECT_THAT(out_, HasSubstr("1 frame without a name: /gone/libgone.so is not on this machine"));
  EXPECT_EQ(Names("named.gmt"), whole_);
}

TEST_F(SymbolizeTest, DebugFileAloneIsEnoughOnAnotherMachine) {
  PutDebugFile("unpacked");
  fs::remove(Library());
  ASSERT_EQ(Run("symbolize run.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  EXPECT_EQ(Names("named.gmt"), whole_);
}

TEST_F(SymbolizeTest, AnotherBuildNamesNothingButItsDebugFileDoes) {
  fs::copy_file(Built("plain/sample.so"), Library(), fs::copy_options::overwrite_existing);
  ASSERT_EQ(Run("symbolize run.gmt -o same.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("0 of 2 frames named (was 0)\n"));
  EXPECT_THAT(out_, HasSubstr("has changed since it was recorded (another build-id)"));
  PutDebugFile("unpacked");
  ASSERT_EQ(Run("symbolize run.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  EXPECT_EQ(Names("named.gmt"), whole_);
}

TEST_F(SymbolizeTest, SearchesSeveralDirectoriesInAnyLayout) {
  fs::create_directories(folder_ / "one");
  fs::create_directories(folder_ / "two/deep/er");
  fs::copy_file(Built("linked/.debug/sample.debug"), folder_ / "two/deep/er/whatever");
  ASSERT_EQ(Run("symbolize run.gmt --debug-dir one --debug-dir two -o named.gmt"), 0) << err_;
  EXPECT_EQ(Names("named.gmt"), whole_);
}

TEST_F(SymbolizeTest, RootPrefixesModulePaths) {
  const fs::path inside = folder_ / "image" / Library().relative_path();
  fs::create_directories(inside.parent_path());
  fs::remove(Library());
  fs::copy_file(Built("linked/sample.so"), inside);
  fs::copy_file(Built("linked/.debug/sample.debug"), inside.parent_path() / "sample.debug");
  ASSERT_EQ(Run("symbolize run.gmt --root image -o named.gmt"), 0) << err_;
  EXPECT_EQ(Names("named.gmt"), whole_);
}

TEST_F(SymbolizeTest, OnlyBetterNamesReplaceOthers) {
  ASSERT_EQ(Run("symbolize run.gmt -o bare.gmt"), 0) << err_;
  PutDebugFile("unpacked");
  ASSERT_EQ(Run("symbolize bare.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  EXPECT_EQ(Names("named.gmt"), whole_);
  ASSERT_EQ(Run("symbolize named.gmt -o again.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("1 of 2 frames named (was 1)\n"));
  EXPECT_EQ(Get("again.gmt"), Get("named.gmt"));
}

TEST_F(SymbolizeTest, CopyBeginsWithTheWholeOriginal) {
  PutDebugFile("unpacked");
  ASSERT_EQ(Run("symbolize run.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  const std::string before = Get("run.gmt"), after = Get("named.gmt");
  const size_t chunks = before.rfind("GMTINDEX") - 4;
  EXPECT_EQ(after.substr(0, chunks), before.substr(0, chunks));
  EXPECT_TRUE(RunJson("info --json named.gmt")["complete"]);
  EXPECT_THAT(RunJson("report --json named.gmt")["rows"][0]["frames"][0]["function"],
              "sample::Innermost()");
}

TEST_F(SymbolizeTest, EverySegmentOfJoinedRecordingsGetsItsNames) {
  PutDebugFile("unpacked");
  Put("both.gmt", Get("run.gmt") + Get("run.gmt"));
  ASSERT_EQ(Run("symbolize both.gmt --debug-dir unpacked -o named.gmt"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("2 of 4 frames named (was 0)\n"));
  EXPECT_TRUE(RunJson("info --json named.gmt")["complete"]);
  for (const auto& row : RunJson("report --json named.gmt")["rows"]) {
    EXPECT_EQ(row["frames"][0]["function"], "sample::Innermost()");
  }
}

TEST_F(SymbolizeTest, JsonHasTheNumbersAndTheCauses) {
  PutDebugFile("unpacked");
  const auto answer = RunJson("symbolize run.gmt --debug-dir unpacked -o named.gmt --json");
  EXPECT_EQ(answer["schema"], "gpumemtrace.symbolize/1");
  EXPECT_EQ(answer["frames"], 2);
  EXPECT_EQ(answer["named"], 1);
  EXPECT_EQ(answer["named_before"], 0);
  EXPECT_EQ(answer["unnamed"][0]["module"], "/gone/libgone.so");
  EXPECT_EQ(answer["unnamed"][0]["build_id"], "abcd");
}

TEST_F(SymbolizeTest, ErrorsNameTheFix) {
  Put("named.gmt", "precious");
  EXPECT_EQ(Run("symbolize run.gmt -o named.gmt"), 1);
  EXPECT_EQ(Get("named.gmt"), "precious");
  EXPECT_EQ(Run("symbolize run.gmt -o named.gmt --force"), 0) << err_;
  EXPECT_EQ(Run("symbolize run.gmt"), 2);
  EXPECT_EQ(Run("symbolize run.gmt --debug-dir nowhere -o x.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("nowhere: is not a directory"));
  EXPECT_EQ(Run("symbolize log.jsonl -o x.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("gpumemtrace import log.jsonl -o FILE.gmt"));
  Put("cut.gmt", Get("run.gmt").substr(0, Get("run.gmt").size() - 30));
  EXPECT_EQ(Run("symbolize cut.gmt -o x.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("gpumemtrace repair cut.gmt OUT.gmt"));
  unsetenv("DEBUGINFOD_URLS");
  EXPECT_EQ(Run("symbolize run.gmt --debuginfod -o x.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("set DEBUGINFOD_URLS"));
  EXPECT_FALSE(fs::exists(folder_ / "x.gmt"));
}

// A debuginfod server may be a directory.
TEST_F(SymbolizeTest, ServersAreAskedOnlyOnRequestAndPrinted) {
  void* client = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (client == nullptr) GTEST_SKIP() << "libdebuginfod.so.1 is missing";
  dlclose(client);
  const fs::path served =
      folder_ / "server/buildid" / absl::BytesToHexString(sample_.key().build_id) / "debuginfo";
  fs::create_directories(served.parent_path());
  fs::copy_file(Built("linked/.debug/sample.debug"), served);
  const std::string server = "file://" + (folder_ / "server").string();
  setenv("DEBUGINFOD_URLS", server.c_str(), 1);
  setenv("DEBUGINFOD_CACHE_PATH", (folder_ / "cache").c_str(), 1);
  EXPECT_EQ(Run("symbolize run.gmt -o unasked.gmt"), 0) << err_;
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  EXPECT_EQ(Run("symbolize run.gmt --debuginfod -o named.gmt"), 0) << err_;
  unsetenv("DEBUGINFOD_URLS");
  unsetenv("DEBUGINFOD_CACHE_PATH");
  EXPECT_THAT(err_, HasSubstr("asking " + server));
  EXPECT_EQ(Names("named.gmt"), whole_);
}

}  // namespace
}  // namespace gmt::cli
