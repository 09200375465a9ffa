#include "symbols/build_id_index.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "symbols/testing/sample_library.h"

namespace gmt::symbols {
namespace {

namespace fs = std::filesystem;

class BuildIdIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("build_id_index." + std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Put(const std::string& variant, const std::string& to) {
    fs::create_directories((dir_ / to).parent_path());
    fs::copy_file(fs::path(GMT_SYMBOLS_TESTDATA) / variant, dir_ / to);
  }
  std::string Find(const BuildIdIndex& index) const {
    const std::string found = index.Find(SampleLibrary("full").key().build_id);
    return found.empty() ? "" : fs::relative(found, dir_).string();
  }

  fs::path dir_;
};

TEST_F(BuildIdIndexTest, FindsAFileAtAnyDepthWithAnyName) {
  Put("stripped/sample.so", "a/b/c/d.bin");
  EXPECT_EQ(Find(BuildIdIndex({dir_})), "a/b/c/d.bin");
}

TEST_F(BuildIdIndexTest, FileWithMostInformationWins) {
  Put("stripped/sample.so", "1.so");
  Put("linked/.debug/sample.debug", "2.debug");
  Put("linked/sample.so", "3.so");
  EXPECT_EQ(Find(BuildIdIndex({dir_})), "2.debug");
}

TEST_F(BuildIdIndexTest, UnreadableAndNonElfFilesAreSkipped) {
  std::ofstream(dir_ / "text") << "not an ELF file";
  fs::create_symlink(dir_, dir_ / "loop");
  ASSERT_EQ(mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const BuildIdIndex index({dir_, dir_ / "nowhere"});
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.Find("absent"), "");
  EXPECT_EQ(index.Find(""), "");
  EXPECT_FALSE(index.cut());
}

}  // namespace
}  // namespace gmt::symbols
