#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "analysis/testing/event_script.h"
#include "answers/ranks/ranks_answer.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using analysis::Category;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class RanksTest : public ::testing::Test {
 protected:
  RanksTest() {
    for (int rank = 0; rank < 4; ++rank) Add(rank);
  }

  RankDigest& Add(int32_t rank) {
    RankDigest digest;
    digest.rank = rank;
    digest.device = rank;
    digest.host = "node";
    digest.pid = 100 + static_cast<uint64_t>(rank);
    digest.file = "r" + std::to_string(rank) + ".gmt";
    digest.peak_bytes = 1000 * kMiB;
    digest.steps = 10;
    digest.total_bytes = 4000 * kMiB;
    digest.used_bytes = 1500 * kMiB;
    digests_.push_back(digest);
    return digests_.back();
  }
  void More(size_t rank, Category category, uint64_t mib, const std::string& label = "") {
    digests_[rank].peak_bytes += mib * kMiB;
    digests_[rank].categories[static_cast<size_t>(category)] += mib * kMiB;
    if (!label.empty()) digests_[rank].stacks[label] += mib * kMiB;
  }
  JobDigests Job(JobDigests::Keep keep = JobDigests::Keep::kPeaks) const {
    JobDigests job(keep);
    for (const RankDigest& digest : digests_) job.Add(digest);
    return job;
  }
  RankComparison Compare() const { return CompareRanks(Job()); }
  std::string Text(size_t top = 0) const {
    return RanksAnswer(Job(), unread_).Text(Terminal{}, top);
  }
  static nlohmann::json Parsed(const RanksAnswer& answer) {
    return nlohmann::json::parse(answer.Json());
  }

  std::vector<RankDigest> digests_;
  std::vector<std::string> unread_;
};

TEST_F(RanksTest, RanksThatAreAlikeAgree) {
  digests_[1].peak_bytes += 5 * kMiB;
  EXPECT_THAT(Compare().outliers, IsEmpty());
  EXPECT_THAT(Text(), StartsWith("4 ranks agree: peak 0.98 GiB\n"));
}

TEST_F(RanksTest, CategoryAndLineOfTheDifferenceAreNamed) {
  More(2, Category::kActivations, 300, "main (train.py:20) > at::linear");
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.outliers, ElementsAre(2u));
  EXPECT_THAT(comparison.rows[2].causes,
              ElementsAre("activations +300 MiB", "+300 MiB by main (train.py:20) > at::linear"));
  EXPECT_EQ(comparison.rows[2].delta_bytes, static_cast<int64_t>(300 * kMiB));
  EXPECT_THAT(Text(), StartsWith("Rank 2 has a peak of 1.27 GiB, 300 MiB more than the median of 4 "
                                 "ranks: activations +300 MiB\n"));
}

TEST_F(RanksTest, NarrowTextLosesNeitherNumbersNorCauses) {
  for (size_t rank = 0; rank < 4; ++rank) {
    digests_[rank].rank.reset();
    digests_[rank].file = "out/of/a/long/directory/name/r" + std::to_string(rank) + ".gmt";
  }
  More(2, Category::kActivations, 300,
       "train_the_model (a_script_with_a_long_name.py:20) > at::linear");
  digests_[2].retries = 1234;
  std::string text = RanksAnswer(Job(), {}).Text({.width = 80});
  text.resize(text.find("\nNext: "));  // a command stays on one line
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(text, Not(HasSubstr("...")));
  EXPECT_THAT(text, HasSubstr("1.27 GiB, 300 MiB"));
  EXPECT_THAT(text, HasSubstr("activations +300 MiB"));
  EXPECT_THAT(text, HasSubstr("\nactivations "));
  EXPECT_THAT(text, HasSubstr("\nr2.gmt"));
  EXPECT_THAT(text, HasSubstr("1234  differs\n"));
}

TEST_F(RanksTest, PeaksByStepAreThoseOfEqualGroups) {
  digests_[0].by_step = {1, {1, 5, 2, 3, 9}, {}, {}};
  digests_[1].by_step = {2, {4, 4, 8}, {}, {}};
  const RankComparison comparison = Compare();
  EXPECT_EQ(comparison.steps_per_group, 2u);
  EXPECT_THAT(PeaksOfGroups(comparison.rows[0].digest.by_step, 2), ElementsAre(5, 3, 9));
  EXPECT_THAT(comparison.median_step_peaks, ElementsAre(4, 3, 8));
  EXPECT_EQ(comparison.rows[3].added, 3u);
}

TEST_F(RanksTest, LessIsADifferenceToo) {
  for (const size_t rank : {0, 1, 2, 3}) More(rank, Category::kActivations, 500);
  digests_[3].peak_bytes -= 400 * kMiB;
  digests_[3].categories[static_cast<size_t>(Category::kActivations)] -= 400 * kMiB;
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.outliers, ElementsAre(3u));
  EXPECT_THAT(comparison.rows[3].causes, ElementsAre("activations -400 MiB"));
}

TEST_F(RanksTest, OfTwoRanksTheOneWithMoreDiffers) {
  digests_.resize(2);
  More(0, Category::kActivations, 300);
  digests_[1].leak = RankDigest::Leak{48.0 * kMiB, "train.py:37", false, {}};
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.outliers, ElementsAre(0u, 1u));
  EXPECT_THAT(comparison.rows[1].causes, ElementsAre("leaks 48.0 MiB per step at train.py:37"));
  EXPECT_THAT(Text(), StartsWith("Rank 0 has a peak of 1.27 GiB, 300 MiB more than the other rank: "
                                 "activations +300 MiB; 1 more\n  differs\n"));
}

TEST_F(RanksTest, ShardOfAnotherSizeIsOneCause) {
  for (const Category category :
       {Category::kParameters, Category::kGradients, Category::kOptimizerState})
    More(1, category, 100);
  EXPECT_THAT(Compare().rows[1].causes,
              ElementsAre(StartsWith("parameters, gradients and optimizer state +300 MiB")));
}

TEST_F(RanksTest, GatheredParametersAreNotCommunicators) {
  More(1, Category::kCommunication, 300);
  EXPECT_THAT(Compare().rows[1].causes,
              ElementsAre("communication +300 MiB: buffers of collectives, such as gathered "
                          "parameters"));
  digests_[1].libraries["NCCL"] = 300 * kMiB;
  EXPECT_THAT(Compare().rows[1].causes, ElementsAre("NCCL +300 MiB: a further communicator"));
}

TEST_F(RanksTest, BuffersOfCollectivesThatAreReleasedLateAreNoDifference) {
  for (RankDigest& digest : digests_) {
    digest.by_step.peak_bytes = std::vector<uint64_t>(6, 1000 * kMiB);
    digest.by_step.categories["communication"] = std::vector<uint64_t>(6, 120 * kMiB);
    digest.collectives_bytes = 400 * kMiB;
  }
  std::vector<uint64_t>& held = digests_[2].by_step.categories["communication"];
  held[1] = held[2] = 234 * kMiB;
  More(2, Category::kCommunication, 114);
  EXPECT_THAT(Compare().outliers, IsEmpty());
  // Something else is larger, too.
  More(2, Category::kActivations, 40);
  EXPECT_THAT(Compare().outliers, ElementsAre(2u));
  digests_[2].peak_bytes -= 40 * kMiB;
  // It has them again, or until the end.
  held = {120 * kMiB, 234 * kMiB, 120 * kMiB, 120 * kMiB, 234 * kMiB, 120 * kMiB};
  EXPECT_THAT(Compare().outliers, ElementsAre(2u));
  held = {120 * kMiB, 234 * kMiB, 234 * kMiB, 234 * kMiB, 234 * kMiB, 234 * kMiB};
  EXPECT_THAT(Compare().outliers, ElementsAre(2u));
  held = {120 * kMiB, 230 * kMiB, 234 * kMiB, 230 * kMiB, 230 * kMiB, 120 * kMiB};
  EXPECT_THAT(Compare().outliers, IsEmpty());
  // The others have not allocated such buffers.
  digests_[2].collectives_bytes += 114 * kMiB;
  EXPECT_THAT(Compare().outliers, ElementsAre(2u));
  digests_[2].collectives_bytes -= 114 * kMiB;
  // It has less.
  digests_[2].peak_bytes = 800 * kMiB;
  EXPECT_THAT(Compare().outliers, ElementsAre(2u));
}

TEST_F(RanksTest, RanksThatReleaseLateDoNotMakeAnotherOneDiffer) {
  for (const size_t rank : {0, 1, 2, 3})
    digests_[rank].by_step.categories["communication"] = std::vector<uint64_t>(6, 120 * kMiB);
  for (const size_t rank : {1, 2}) {
    digests_[rank].by_step.categories["communication"][1] = 234 * kMiB;
    digests_[rank].peak_bytes += 114 * kMiB;
  }
  More(3, Category::kActivations, 300);
  EXPECT_THAT(Compare().outliers, ElementsAre(3u));
}

TEST_F(RanksTest, RankThatReleasesEarlierThanMostDoesNotDifferEither) {
  for (RankDigest& digest : digests_) {
    digest.by_step.categories["communication"] = std::vector<uint64_t>(6, 120 * kMiB);
    if (digest.rank != 1) digest.by_step.categories["communication"][1] = 234 * kMiB;
    if (digest.rank != 1) digest.peak_bytes += 114 * kMiB;
  }
  EXPECT_THAT(Compare().outliers, IsEmpty());
}

TEST_F(RanksTest, RanksThatVaryAreNotAllOutliers) {
  for (int rank = 4; rank < 16; ++rank) Add(rank);
  for (size_t rank = 0; rank < 16; ++rank) digests_[rank].peak_bytes += rank * 20 * kMiB;
  EXPECT_THAT(Compare().outliers, IsEmpty());
  digests_[5].peak_bytes += 1000 * kMiB;
  EXPECT_THAT(Compare().outliers, ElementsAre(5u));
}

TEST_F(RanksTest, ContextsOfOtherRanksAreNamed) {
  digests_[0].others = {{101, 500 * kMiB}, {102, 500 * kMiB}, {999, 100 * kMiB}};
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.outliers, ElementsAre(0u));
  EXPECT_THAT(
      comparison.rows[0].causes,
      ElementsAre(StartsWith("contexts of ranks 1, 2 on its GPU: 0.98 GiB; they must call")));
}

TEST_F(RanksTest, ProcessOfAnotherMachineWithTheSameNumberIsNoRank) {
  digests_[0].others = {{101, 500 * kMiB}};
  digests_[1].host = "other";
  EXPECT_THAT(Compare().outliers, IsEmpty());
}

TEST_F(RanksTest, LeakOfOneRankIsNamedAndIsTheNextToFail) {
  digests_[3].leak = RankDigest::Leak{48.0 * kMiB, "train.py:37", false, 3'600'000'000'000};
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.outliers, ElementsAre(3u));
  EXPECT_THAT(comparison.rows[3].causes, ElementsAre("leaks 48.0 MiB per step at train.py:37"));
  EXPECT_EQ(comparison.next_to_fail, 3u);
  EXPECT_THAT(Text(), StartsWith("Rank 3 differs: leaks 48.0 MiB per step at train.py:37\n"
                                 "next to run out: rank 3, in 1 h 0 m at its rate\n"));
}

TEST_F(RanksTest, LeakOfAllRanksMakesNoneDiffer) {
  for (RankDigest& digest : digests_)
    digest.leak = RankDigest::Leak{48.0 * kMiB, "train.py:37", false, {}};
  EXPECT_THAT(Compare().outliers, IsEmpty());
}

TEST_F(RanksTest, RetriesOfOneRankAreCounted) {
  digests_[1].retries = 2;
  EXPECT_THAT(Compare().rows[1].causes, ElementsAre("2 retries of its allocator"));
  digests_[1].retries = 1;
  EXPECT_THAT(Compare().rows[1].causes, ElementsAre("1 retry of its allocator"));
}

TEST_F(RanksTest, WithoutALeakTheFullestIsTheNextToFail) {
  digests_[1].used_bytes = 3900 * kMiB;
  const RankComparison comparison = Compare();
  EXPECT_EQ(comparison.next_to_fail, 1u);
  EXPECT_EQ(comparison.why_next, "100 MiB free at its peak");
}

TEST_F(RanksTest, RanksAreOrderedByNumberAndFilesWithoutOneComeLast) {
  digests_[0].rank = std::nullopt;
  std::swap(digests_[1], digests_[3]);
  const RankComparison comparison = Compare();
  EXPECT_EQ(comparison.rows[0].name, "rank 1");
  EXPECT_EQ(comparison.rows[3].name, "r0.gmt");
}

TEST_F(RanksTest, TextShowsThoseThatDifferAndWhatCouldNotBeRead) {
  for (int rank = 4; rank < 40; ++rank) Add(rank);
  More(33, Category::kActivations, 300);
  unread_ = {"r99.gmt: not a recording"};
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("rank 33"));
  EXPECT_THAT(text, HasSubstr("and 32 more: --top 40"));
  EXPECT_THAT(text, HasSubstr("Not read\n  r99.gmt: not a recording\n"));
  EXPECT_THAT(text, HasSubstr("Next: gpumemtrace diff r0.gmt r33.gmt\n"));
}

TEST_F(RanksTest, JsonHasEveryRankAndItsCauses) {
  More(2, Category::kActivations, 300);
  const auto json = Parsed(RanksAnswer(Job(), unread_));
  EXPECT_EQ(json["schema"], "gpumemtrace.ranks/1");
  ASSERT_THAT(json["ranks"], SizeIs(4));
  EXPECT_EQ(json["ranks"][2]["causes"][0], "activations +300 MiB");
  EXPECT_EQ(json["ranks"][2]["categories"]["activations"], 300 * kMiB);
  EXPECT_EQ(json["outliers"], nlohmann::json::array({2}));
}

TEST_F(RanksTest, LineOfTheDifferenceIsNamedAmongThoseOfAllRanks) {
  for (int rank = 4; rank < 9; ++rank) Add(rank);
  for (RankDigest& digest : digests_) {
    digest.stacks["common"] = 900 * kMiB;
    digest.stacks["own " + std::to_string(*digest.rank)] = 10 * kMiB;
  }
  More(1, Category::kActivations, 300, "common");
  More(2, Category::kActivations, 300, "other");
  digests_[3].peak_bytes -= 300 * kMiB;
  digests_[3].stacks["common"] -= 300 * kMiB;
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.rows[1].causes, Contains("+300 MiB by common"));
  EXPECT_THAT(comparison.rows[2].causes, Contains("+300 MiB by other"));
  EXPECT_THAT(comparison.rows[3].causes, ElementsAre("-300 MiB by common"));
}

TEST_F(RanksTest, StepsThatDifferAreNamedUnlessTheyAreAll) {
  for (RankDigest& digest : digests_)
    digest.by_step.peak_bytes = std::vector<uint64_t>(10, 800 * kMiB);
  for (const size_t rank : {1, 2, 3}) More(rank, Category::kActivations, 300);
  for (uint64_t& peak : digests_[1].by_step.peak_bytes) peak += 300 * kMiB;
  for (const size_t step : {4, 6}) digests_[2].by_step.peak_bytes[step] += 300 * kMiB;
  for (const size_t step : {7, 8, 9}) digests_[3].by_step.peak_bytes[step] += 300 * kMiB;
  for (int rank = 4; rank < 12; ++rank) {
    Add(rank).by_step.steps_per_group = 4;
    digests_.back().by_step.peak_bytes = std::vector<uint64_t>(3, 800 * kMiB);
  }
  const RankComparison comparison = Compare();
  EXPECT_THAT(comparison.rows[1].causes, ElementsAre("activations +300 MiB"));
  EXPECT_EQ(comparison.rows[1].differing_steps, std::pair(uint64_t{1}, uint64_t{10}));
  // In groups of four, the largest that a rank has.
  EXPECT_THAT(comparison.rows[2].causes, Contains("differs only in steps 5 to 8"));
  EXPECT_THAT(comparison.rows[3].causes, Contains("differs from step 5 on"));
  EXPECT_EQ(comparison.rows[0].differing_steps, std::nullopt);
}

TEST_F(RanksTest, StepsAreInJsonIfTheyAreKept) {
  digests_[2].by_step.peak_bytes = {5, 7};
  digests_[2].by_step.categories["activations"] = {3, 4};
  digests_[2].by_step.stacks["main"] = {3, 0};
  const auto row = Parsed(RanksAnswer(Job(JobDigests::Keep::kSteps), {}))["ranks"][2];
  EXPECT_EQ(row["by_step"]["steps_per_group"], 1);
  EXPECT_EQ(row["by_step"]["peak_bytes"], nlohmann::json({5, 7}));
  EXPECT_EQ(row["by_step"]["categories"]["activations"], nlohmann::json({3, 4}));
  EXPECT_EQ(row["by_step"]["stacks"]["main"], nlohmann::json({3, 0}));
  EXPECT_FALSE(Parsed(RanksAnswer(Job(), {}))["ranks"][2].contains("by_step"));
}

TEST_F(RanksTest, SpreadIsThatOfAllRanks) {
  More(2, Category::kActivations, 300);
  for (size_t rank = 1; rank < 4; ++rank) {
    digests_[rank].libraries["NCCL"] = rank * kMiB;
    digests_[rank].libraries["cuBLAS"] = 8 * kMiB;
    digests_[rank].reserved_bytes = 2000 * kMiB;
  }
  digests_[3].retries = 5;
  const RankComparison comparison = Compare();
  const auto is = [](const Spread& spread, uint64_t least, uint64_t median, uint64_t most) {
    return spread.least == least && spread.median == median && spread.most == most;
  };
  EXPECT_TRUE(is(comparison.peak_bytes, 1000 * kMiB, 1000 * kMiB, 1300 * kMiB));
  EXPECT_TRUE(is(comparison.reserved_bytes, 0, 2000 * kMiB, 2000 * kMiB));
  EXPECT_TRUE(is(comparison.retries, 0, 0, 5));
  // A rank without the library has no bytes of it.
  EXPECT_TRUE(is(comparison.libraries.at("NCCL"), 0, 1 * kMiB, 3 * kMiB));
  const auto json = Parsed(RanksAnswer(Job(), {}))["spread"];
  EXPECT_EQ(json["categories"]["activations"],
            nlohmann::json({{"min", 0}, {"median", 0}, {"max", 300 * kMiB}}));
  EXPECT_EQ(json["outside"]["cuBLAS"]["max"], 8 * kMiB);
  EXPECT_FALSE(json["categories"].contains("gradients"));
  // Those that vary most come first.
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("least     median       most\npeak "));
  EXPECT_LT(text.find("\nactivations "), text.find("\noutside: cuBLAS "));
}

TEST_F(RanksTest, SeveralLinesOfTheDifferenceAreListed) {
  for (RankDigest& digest : digests_) digest.stacks = {{"a", 50 * kMiB}, {"same", kMiB}};
  More(2, Category::kActivations, 300, "b");
  More(2, Category::kActivations, 80, "c");
  digests_[2].stacks["a"] = 10 * kMiB;
  digests_[2].stacks["small"] = 1;
  const auto row = Parsed(RanksAnswer(Job(), {}))["ranks"][2];
  EXPECT_EQ(row["stacks"][0],
            nlohmann::json({{"stack", "b"}, {"bytes", 300 * kMiB}, {"median_bytes", 0}}));
  EXPECT_EQ(row["stacks"][2],
            nlohmann::json({{"stack", "a"}, {"bytes", 10 * kMiB}, {"median_bytes", 50 * kMiB}}));
  EXPECT_THAT(row["stacks"], SizeIs(4));
  // The first is a cause already, and one byte is not worth a line.
  EXPECT_THAT(Text(), HasSubstr("  +300 MiB by b\n  also +80.0 MiB by c\n  also -40.0 MiB by a\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("small")));
  EXPECT_THAT(Parsed(RanksAnswer(Job(), {}))["ranks"][0]["stacks"], IsEmpty());
}

TEST_F(RanksTest, JsonInPartsIsOneDocument) {
  digests_[1].host = "a \"host\"\nof two lines";
  digests_[2].by_step.peak_bytes = {5, 7};
  const RanksAnswer answer(Job(JobDigests::Keep::kSteps), {"r9.gmt: not a recording"});
  std::string text;
  size_t longest = 0;
  answer.WriteJson([&](std::string_view part) {
    text += part;
    longest = std::max(longest, part.size());
  });
  EXPECT_EQ(text, answer.Json());
  EXPECT_LT(longest, text.size() / 2);
  // Its layout is that of all JSON.
  EXPECT_EQ(text, nlohmann::ordered_json::parse(text).dump(2) + "\n");
}

TEST_F(RanksTest, CommandIsNamedOnlyForRecordingsThatAreThere) {
  More(2, Category::kActivations, 300);
  EXPECT_THAT(Text(), HasSubstr("Next: gpumemtrace diff r0.gmt r2.gmt\n"));
  digests_[0].file = "r0.gmt.digest";
  EXPECT_THAT(Text(), HasSubstr("Next: gpumemtrace report r2.gmt\n"));
  digests_[2].file = "r2.gmt.digest";
  EXPECT_THAT(Text(), Not(HasSubstr("Next: ")));
}

TEST_F(RanksTest, DigestHasThePeakByCategoryLineAndLibrary) {
  analysis::EventScript script;
  script.Alloc(0x10000000, 20 * kMiB, {"cudaMalloc", "load"});
  script.Alloc(0x20000000, 4 * kMiB, {"own", "main"});
  script.Block(0x10000000, 2 * kMiB, {"forward", "main"});
  script.FreeBlock(0x10000000);
  const auto recording = RecordingSoFar("run.gmt", script.Build(), script.definitions());
  const RankDigest digest = MakeDigest(*recording);
  EXPECT_EQ(digest.peak_bytes, 24 * kMiB);
  EXPECT_EQ(digest.reserved_bytes, 20 * kMiB);
  uint64_t sum = 0;
  for (const uint64_t bytes : digest.categories) sum += bytes;
  EXPECT_EQ(sum, digest.peak_bytes);
  EXPECT_FALSE(digest.leak);
}

}  // namespace
}  // namespace gmt::answers
