#include "symbols/module_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "symbols/testing/sample_library.h"

namespace gmt::symbols {
namespace {

namespace fs = std::filesystem;

class ModuleFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("module_files." + std::to_string(getpid()));
    fs::create_directories(dir_);
    options_.debug_dirs = {dir_ / "debug"};
  }
  void TearDown() override { fs::remove_all(dir_); }

  static fs::path Built(const std::string& name) { return fs::path(GMT_SYMBOLS_TESTDATA) / name; }
  fs::path Put(const std::string& from, const std::string& to) {
    fs::create_directories((dir_ / to).parent_path());
    fs::copy_file(Built(from), dir_ / to, fs::copy_options::overwrite_existing);
    return dir_ / to;
  }
  ModuleFiles Open(const std::string& path) { return OpenModuleFiles({path, build_id_}, options_); }

  fs::path dir_;
  SymbolizerOptions options_;
  const std::string build_id_ = SampleLibrary("full").key().build_id;
};

TEST_F(ModuleFilesTest, StrippedModuleComesWithItsDebugFile) {
  Put("linked/.debug/sample.debug", "lib/.debug/sample.debug");
  const ModuleFiles files = Open(Put("linked/sample.so", "lib/sample.so"));
  EXPECT_EQ(files.state, ModuleState::kUsable);
  EXPECT_EQ(files.file->path(), dir_ / "lib/sample.so");
  ASSERT_NE(files.debug, nullptr);
}

TEST_F(ModuleFilesTest, FindersAreUsedOnlyWithoutDwarf) {
  int asked = 0;
  options_.finders.push_back([&](const std::string& build_id) {
    ++asked;
    EXPECT_EQ(build_id, build_id_);
    return Built("linked/.debug/sample.debug").string();
  });
  EXPECT_EQ(Open(Put("full/sample.so", "sample.so")).debug, nullptr);
  EXPECT_EQ(asked, 0);
  EXPECT_NE(Open(Put("stripped/sample.so", "sample.so")).debug, nullptr);
  EXPECT_EQ(asked, 1);
}

TEST_F(ModuleFilesTest, FileOfAnotherBuildFromAFinderIsRejected) {
  options_.finders.push_back([&](const std::string&) { return Built("plain/sample.so").string(); });
  EXPECT_EQ(Open(Put("stripped/sample.so", "sample.so")).debug, nullptr);
  EXPECT_EQ(Open("/nowhere/sample.so").state, ModuleState::kMissing);
}

TEST_F(ModuleFilesTest, MissingOrReplacedModuleIsReplacedByItsDebugFile) {
  EXPECT_EQ(Open("/nowhere/sample.so").state, ModuleState::kMissing);
  EXPECT_EQ(Open(Put("plain/sample.so", "sample.so")).state, ModuleState::kChanged);
  options_.finders.push_back(
      [&](const std::string&) { return Built("linked/.debug/sample.debug").string(); });
  for (const fs::path& path : {fs::path("/nowhere/sample.so"), dir_ / "sample.so"}) {
    const ModuleFiles files = Open(path);
    EXPECT_EQ(files.state, ModuleState::kUsable) << path;
    EXPECT_EQ(files.debug, nullptr);
    EXPECT_EQ(files.file->path(), Built("linked/.debug/sample.debug"));
  }
}

// A child process that waits to be killed.
class Child {
 public:
  explicit Child(const std::string& program) : pid_(fork()) {
    if (pid_ != 0) return;
    execl(program.c_str(), program.c_str(), "600", nullptr);
    _exit(127);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string proc() const { return "/proc/" + std::to_string(pid_); }
  // Waits until the process executes `program`.
  void WaitFor(const std::string& program) const {
    std::error_code error;
    while (fs::read_symlink(proc() + "/exe", error) != program) usleep(1000);
  }

 private:
  pid_t pid_;
};

TEST_F(ModuleFilesTest, DeletedProgramIsReadWhileItsProcessLives) {
  const fs::path program = dir_ / "sleeper";
  fs::copy_file("/bin/sleep", program);
  ModuleKey key = {program.string() + " (deleted)", ElfFile::Open(program).value()->BuildId()};
  {
    const Child child(program);
    child.WaitFor(program);
    fs::remove(program);
    options_.process = child.proc();
    EXPECT_EQ(OpenModuleFiles(key, options_).state, ModuleState::kUsable);
  }
  EXPECT_EQ(OpenModuleFiles(key, options_).state, ModuleState::kMissing);
}

TEST_F(ModuleFilesTest, DeletedLibraryIsReadThroughTheMapping) {
  const fs::path library = Put("full/sample.so", "sample.so");
  const SampleLibrary sample("full");
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  fs::remove(library);
  options_.process = "/proc/self";
  const ModuleFiles files = Open(library.string() + " (deleted)");
  dlclose(handle);
  if (files.state == ModuleState::kMissing || files.state == ModuleState::kUnreadable) {
    GTEST_SKIP() << "this user may not open mapped files (/proc/PID/map_files)";
  }
  EXPECT_EQ(files.state, ModuleState::kUsable);
}

TEST_F(ModuleFilesTest, AnotherFileHasTheNameOfTheDeletedOne) {
  const fs::path library = Put("plain/sample.so", "sample.so");
  EXPECT_EQ(Open(library.string() + " (deleted)").state, ModuleState::kChanged);
  Put("full/sample.so", "sample.so");
  EXPECT_EQ(Open(library.string() + " (deleted)").state, ModuleState::kUsable);
}

}  // namespace
}  // namespace gmt::symbols
