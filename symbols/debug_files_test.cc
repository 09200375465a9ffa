#include "symbols/debug_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "symbols/testing/sample_library.h"

namespace gmt::symbols {
namespace {

namespace fs = std::filesystem;

class DebugFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("debug_files." + std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  static fs::path Built(const std::string& name) { return fs::path(GMT_SYMBOLS_TESTDATA) / name; }
  // Opens a copy of the stripped library, which has no debug link, in the directory of this test.
  std::unique_ptr<ElfFile> Stripped() { return OpenCopy(Built("stripped/sample.so"), "sample.so"); }
  std::unique_ptr<ElfFile> OpenCopy(const fs::path& from, const std::string& to) {
    Put(from, to);
    return ElfFile::Open(dir_ / to).value();
  }
  void Put(const fs::path& from, const std::string& to) {
    fs::create_directories((dir_ / to).parent_path());
    fs::copy_file(from, dir_ / to, fs::copy_options::overwrite_existing);
  }
  std::string ByBuildId(const ElfFile& file) {
    const std::string hex = absl::BytesToHexString(file.BuildId());
    return ".build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
  }
  std::string Find(const ElfFile& file) {
    auto found = FindDebugFile(file.BuildId(), &file, root_, {dir_ / "absent", dir_});
    return found == nullptr ? "" : fs::relative(found->path(), dir_).string();
  }

  fs::path dir_;
  std::string root_;
  const fs::path debug_ = Built("linked/.debug/sample.debug");
};

TEST_F(DebugFilesTest, BuildIdTreeOfAnyDebugDirectory) {
  auto file = Stripped();
  EXPECT_EQ(Find(*file), "");
  Put(debug_, ByBuildId(*file));
  EXPECT_EQ(Find(*file), ByBuildId(*file));
}

TEST_F(DebugFilesTest, LinkNextToTheFileAndInItsDebugDirectory) {
  auto file = OpenCopy(Built("linked/sample.so"), "lib/sample.so");
  EXPECT_EQ(file->DebugLink(), "sample.debug");
  Put(debug_, "lib/.debug/sample.debug");
  EXPECT_EQ(Find(*file), "lib/.debug/sample.debug");
  Put(debug_, "lib/sample.debug");
  EXPECT_EQ(Find(*file), "lib/sample.debug");
}

TEST_F(DebugFilesTest, LinkUnderTheDebugDirectory) {
  auto file = OpenCopy(Built("linked/sample.so"), "lib/sample.so");
  const std::string mirrored = (dir_ / "lib/sample.debug").string().substr(1);
  Put(debug_, mirrored);
  EXPECT_EQ(Find(*file), mirrored);
}

TEST_F(DebugFilesTest, BuildIdIsSufficientWithoutTheFile) {
  auto file = Stripped();
  Put(debug_, ByBuildId(*file));
  auto found = FindDebugFile(file->BuildId(), nullptr, "", {dir_});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->path(), dir_ / ByBuildId(*file));
  EXPECT_EQ(FindDebugFile("", nullptr, "", {dir_}), nullptr);
}

TEST_F(DebugFilesTest, DebugDirectoriesOfAnotherRootComeFirst) {
  root_ = dir_ / "root";
  auto file = OpenCopy(Built("linked/sample.so"), "root/lib/sample.so");
  Put(debug_, ByBuildId(*file));
  EXPECT_EQ(Find(*file), ByBuildId(*file));
  const std::string inside = "root" + dir_.string() + "/lib/sample.debug";
  Put(debug_, inside);
  fs::remove(dir_ / ByBuildId(*file));
  EXPECT_EQ(Find(*file), inside);
}

TEST_F(DebugFilesTest, DebugFileOfAnotherBuildIsRejected) {
  auto file = OpenCopy(Built("linked/sample.so"), "lib/sample.so");
  Put(Built("plain/sample.so"), "lib/sample.debug");
  EXPECT_EQ(Find(*file), "");
}

TEST_F(DebugFilesTest, InvalidDebugFileIsSkipped) {
  auto file = Stripped();
  fs::create_directories((dir_ / ByBuildId(*file)).parent_path());
  std::ofstream(dir_ / ByBuildId(*file)) << "not an ELF file";
  EXPECT_EQ(Find(*file), "");
}

}  // namespace
}  // namespace gmt::symbols
