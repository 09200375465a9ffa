#include "answers/ranks/rank_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gmt::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RankFilesTest : public ::testing::Test {
 protected:
  RankFilesTest()
      : folder_(std::filesystem::temp_directory_path() /
                absl::StrCat("gmt_rank_files.", getpid())) {
    std::filesystem::create_directories(folder_ / "node1");
  }
  ~RankFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Make(const std::string& name) {
    std::ofstream(folder_ / name) << "x";
    return folder_ / name;
  }

  const std::filesystem::path folder_;
};

TEST_F(RankFilesTest, DirectoryHasItsRecordingsAndTheDigestsOfOthers) {
  const std::string r0 = Make("r0.gmt"), deep = Make("node1/r2.gmt");
  Make("r0.gmt.digest");
  Make("log.txt");
  const std::string alone = Make("r1.gmt.digest");
  const auto files = FilesOfRanks({folder_});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(deep, r0, alone));
}

TEST_F(RankFilesTest, DigestStandsForItsRecordingAndEachIsThereOnce) {
  const std::string r0 = Make("r0.gmt"), digest = Make("r0.gmt.digest");
  const auto files = FilesOfRanks({r0, digest, folder_, "missing.gmt", "missing.gmt.digest"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(r0, "missing.gmt", "missing.gmt.digest"));
}

TEST_F(RankFilesTest, DirectoryWithoutRecordingsIsAnError) {
  const auto files = FilesOfRanks({folder_});
  EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(files.status().message(), HasSubstr("no recording (*.gmt) in this directory"));
}

}  // namespace
}  // namespace gmt::answers
