#include "cli/record/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gmt::cli {
namespace {

using State = Check::State;
using testing::EndsWith;
using testing::StartsWith;

const ShellCommands kWithPython = {.gpumemtrace = "gpumemtrace", .python = "python3"};

TEST(NextStepTest, MachineWithAGpuRecords) {
  const std::vector<Check> checks = {{"library", State::kWorks, ""},
                                     {kDriverCheck, State::kWorks, ""},
                                     {"cupti", State::kWithout, ""}};
  EXPECT_EQ(NextStep(checks, kWithPython), "gpumemtrace run -- python3 train.py");
}

TEST(NextStepTest, MachineWithoutPythonRecordsAnotherProgram) {
  EXPECT_EQ(NextStep({{kDriverCheck, State::kWorks, ""}},
                     {.gpumemtrace = "/opt/gpumemtrace/bin/gpumemtrace", .python = ""}),
            "/opt/gpumemtrace/bin/gpumemtrace run -- ./program");
}

TEST(NextStepTest, MachineWithoutADriverReads) {
  EXPECT_THAT(NextStep({{kDriverCheck, State::kWithout, ""}}, kWithPython),
              EndsWith("gpumemtrace view FILE"));
}

TEST(NextStepTest, WhatFailsComesFirst) {
  const std::vector<Check> checks = {{kDriverCheck, State::kWithout, ""},
                                     {"collector", State::kFails, "not found"}};
  EXPECT_THAT(NextStep(checks, kWithPython), StartsWith("correct \"collector\""));
}

// A directory with programs is the only entry of PATH.
class FindCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "next_step_test.XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = std::getenv("PATH");
    setenv("PATH", folder_.c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void PutProgram(const std::string& name) {
    std::ofstream(folder_ / name) << "#!/bin/sh\n";
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(FindCommandsTest, ProgramOutsidePathIsCalledByItsPath) {
  EXPECT_EQ(FindCommands().gpumemtrace, std::filesystem::read_symlink("/proc/self/exe"));
  PutProgram("gpumemtrace");
  EXPECT_EQ(FindCommands().gpumemtrace, "gpumemtrace");
}

TEST_F(FindCommandsTest, PythonOfAnEnvironmentComesFirst) {
  EXPECT_EQ(FindCommands().python, "");
  PutProgram("python3");
  EXPECT_EQ(FindCommands().python, "python3");
  PutProgram("python");
  EXPECT_EQ(FindCommands().python, "python");
}

TEST_F(FindCommandsTest, DirectoriesAndFilesThatCannotRunAreNoCommands) {
  std::filesystem::create_directory(folder_ / "python");
  std::ofstream(folder_ / "python3") << "";
  EXPECT_EQ(FindCommands().python, "");
}

}  // namespace
}  // namespace gmt::cli
