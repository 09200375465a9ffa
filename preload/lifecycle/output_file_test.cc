#include "preload/lifecycle/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string pattern = testing::TempDir() + "gmt-output.XXXXXX";
    directory_ = mkdtemp(pattern.data());
    setenv("XDG_STATE_HOME", directory_.c_str(), 1);
  }
  ~OutputFileTest() override { std::filesystem::remove_all(directory_); }

  // Creates a recording and leaves it in the state of a finished one.
  std::string Create(const std::string& name, const std::string& run_id = "",
                     const std::string& content = "") {
    const OutputFile file = CreateOutputFile((directory_ + "/" + name).c_str(), run_id.c_str());
    if (file.fd < 0) return "";
    EXPECT_EQ(write(file.fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(file.fd);
    return std::string(file.path).substr(directory_.size() + 1);
  }

  std::string Expand(const std::string& pattern) {
    char path[256];
    return ExpandPattern(pattern.c_str(), path, sizeof(path)) ? path : "does not fit";
  }

  std::string directory_;
};

TEST_F(OutputFileTest, PatternExpandsProcessHostAndVariables) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  setenv("GMT_TEST_VARIABLE", "blue", 1);
  EXPECT_EQ(Expand("a.%p.gmt"), "a." + std::to_string(getpid()) + ".gmt");
  EXPECT_EQ(Expand("%h"), host);
  EXPECT_EQ(Expand("%q{GMT_TEST_VARIABLE}-%q{GMT_TEST_NOT_SET}"), "blue-");
  EXPECT_EQ(Expand("100%%"), "100%");
}

TEST_F(OutputFileTest, PatternExpandsValuesOfTheLauncher) {
  setenv("GPUMEMTRACE_RANK", "13", 1);
  setenv("LOCAL_RANK", "5", 1);
  setenv("SLURM_JOB_ID", "4711", 1);
  EXPECT_EQ(Expand("%j/r%r.l%l"), "4711/r13.l5");
  setenv("SLURM_JOB_ID", "../4711", 1);
  EXPECT_EQ(Expand("%j/r%r"), ".._4711/r13");
  for (const char* name : {"GPUMEMTRACE_RANK", "LOCAL_RANK", "SLURM_JOB_ID"}) unsetenv(name);
}

TEST_F(OutputFileTest, UnknownSequenceIsKept) { EXPECT_EQ(Expand("a%zb%q{"), "a%zb%q{"); }

TEST_F(OutputFileTest, PatternThatDoesNotFitIsRefused) {
  EXPECT_EQ(Expand(std::string(300, 'x')), "does not fit");
}

TEST_F(OutputFileTest, LaterRunTakesTheNextFreeNumber) {
  EXPECT_EQ(Create("run.gmt"), "run.gmt");
  EXPECT_EQ(Create("run.gmt"), "run.1.gmt");
  EXPECT_EQ(Create("run.gmt"), "run.2.gmt");
}

TEST_F(OutputFileTest, SecondProcessOfTheSameRunTakesItsPid) {
  Create("run.gmt", "abc123", "header with abc123 inside");
  EXPECT_EQ(Create("run.gmt", "abc123"), "run." + std::to_string(getpid()) + ".gmt");
  EXPECT_EQ(Create("run.gmt", "other"), "run.1.gmt");
}

TEST_F(OutputFileTest, FileThatIsBeingWrittenBelongsToThisRun) {
  const OutputFile first = CreateOutputFile((directory_ + "/run.gmt").c_str(), "");
  EXPECT_EQ(Create("run.gmt"), "run." + std::to_string(getpid()) + ".gmt");
  close(first.fd);
}

TEST_F(OutputFileTest, NameWithoutExtensionGetsItsNumberAtTheEnd) {
  EXPECT_EQ(Create("run"), "run");
  EXPECT_EQ(Create("run"), "run.1");
}

TEST_F(OutputFileTest, MissingDirectoriesAreCreated) {
  const OutputFile file = CreateOutputFile((directory_ + "/new/inner/run.gmt").c_str(), "");
  ASSERT_GE(file.fd, 0);
  EXPECT_FALSE(file.moved);
  EXPECT_EQ(file.path, directory_ + "/new/inner/run.gmt");
  close(file.fd);
}

TEST_F(OutputFileTest, DirectoriesOfTheRootAreNotCreated) {
  const OutputFile file = CreateOutputFile("/gmt-no-such-directory/inner/run.gmt", "");
  ASSERT_GE(file.fd, 0);
  EXPECT_TRUE(file.moved);
  EXPECT_EQ(file.error, ENOENT);
  EXPECT_FALSE(std::filesystem::exists("/gmt-no-such-directory"));
  close(file.fd);
}

TEST_F(OutputFileTest, PlaceThatCannotBeADirectoryIsReplacedByTheStateDirectory) {
  std::ofstream(directory_ + "/file") << "in the way";
  const OutputFile file = CreateOutputFile((directory_ + "/file/run.gmt").c_str(), "");
  ASSERT_GE(file.fd, 0);
  EXPECT_TRUE(file.moved);
  EXPECT_EQ(file.error, ENOTDIR);
  EXPECT_EQ(file.path, directory_ + "/gpumemtrace/run.gmt");
  close(file.fd);
}

TEST_F(OutputFileTest, SymbolicLinkIsNotFollowed) {
  std::filesystem::create_symlink("/dev/null", directory_ + "/run.gmt");
  EXPECT_EQ(Create("run.gmt"), "run.1.gmt");
}

}  // namespace
}  // namespace gmt::preload
