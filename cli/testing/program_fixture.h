// cli/testing/program_fixture.h
//
// For tests: runs the program itself in a temporary directory.

#ifndef GMT_CLI_TESTING_PROGRAM_FIXTURE_H_
#define GMT_CLI_TESTING_PROGRAM_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace gmt::cli {

class ProgramFixture : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("gmt_program." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string Get(const std::string& name) {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // Runs the program in the test's directory. Returns its exit code. `feeder` comes before it in
  // the command line: a command and a pipe, or a redirection.
  int Run(const std::string& arguments, const std::string& feeder = "</dev/null ") {
    const std::string command = "cd " + folder_.string() + " && " + limits_ + feeder +
                                GMT_PROGRAM " " + arguments + " >out 2>err";
    const int status = std::system(command.c_str());
    out_ = Get("out");
    err_ = Get("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  nlohmann::json RunJson(const std::string& arguments) {
    EXPECT_EQ(Run(arguments), 0) << err_;
    return nlohmann::json::parse(out_);
  }
  std::filesystem::path folder_;
  std::string out_, err_;
  std::string limits_;  // shell commands before the program: "ulimit -v 1000; "
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TESTING_PROGRAM_FIXTURE_H_
