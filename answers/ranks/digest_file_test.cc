#include "answers/ranks/digest_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "analysis/median.h"
#include "analysis/testing/event_script.h"
#include "answers/ranks/bytes_by_name.h"
#include "answers/ranks/rank_comparison.h"
#include "answers/ranks/ranks_answer.h"
#include "format/crc32c.h"
#include "format/framing.h"
#include "format/printable.h"
#include "format/units.h"
#include "proto/digest.pb.h"
#include "tests/seeds/seeds.h"

namespace gmt::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TextOf(size_t bytes, size_t number) {
  std::string text = std::to_string(number);
  text.resize(bytes, 'x');
  return text;
}

// Returns a digest with values in every field.
RankDigest FullDigest() {
  RankDigest digest;
  digest.rank = 3;
  digest.host = "node\x1b[1m";
  digest.pid = 4711;
  digest.device = 2;
  digest.peak_bytes = 24 * kMiB;
  digest.peak_t_ns = -5;
  digest.reserved_bytes = 20 * kMiB;
  digest.categories[1] = 7;
  digest.categories[analysis::kCategories - 1] = 8;
  digest.stacks = {{"main (train.py:20)", 9}, {"other\n", 10}};
  digest.other_stacks_bytes = 11;
  digest.libraries = {{"NCCL", 12}};
  digest.total_bytes = 80 * kGiB;
  digest.used_bytes = 13;
  digest.others = {{14, 15}, {16, 17}};
  digest.steps = 18;
  digest.retries = 19;
  digest.failures = 20;
  digest.leak = RankDigest::Leak{1.5, "train.py:37", true, 21};
  digest.by_step.steps_per_group = 8;
  digest.by_step.peak_bytes = {22, 23, 24};
  digest.by_step.categories = {{"activations", {1, 2, 3}}};
  digest.by_step.stacks = {{"main", {4, 5, 6}}};
  digest.notes = {"2 events lost"};
  return digest;
}

// Returns the largest digest that can be made.
RankDigest LargestDigest() {
  const uint64_t bytes = uint64_t{1} << 56;
  RankDigest digest = FullDigest();
  digest.host = TextOf(RankDigest::kMaxTextBytes, 0);
  digest.leak->place = TextOf(RankDigest::kMaxTextBytes, 0);
  digest.categories.fill(bytes);
  for (size_t i = 0; i < RankDigest::kMaxStacks; ++i)
    digest.stacks[TextOf(RankDigest::kMaxTextBytes, i)] = bytes;
  for (size_t i = 0; i < RankDigest::kMaxLibraries; ++i)
    digest.libraries[TextOf(RankDigest::kMaxTextBytes, i)] = bytes;
  digest.others.assign(RankDigest::kMaxProcesses, {UINT64_MAX, bytes});
  digest.notes.assign(RankDigest::kMaxNotes, TextOf(RankDigest::kMaxTextBytes, 0));
  const std::vector<uint64_t> groups(StepGroups::kMost, bytes);
  digest.by_step = {uint64_t{1} << 40, groups, {}, {}};
  for (size_t i = 0; i < analysis::kCategories; ++i)
    digest.by_step.categories[TextOf(20, i)] = groups;
  for (size_t i = 0; i < StepGroups::kMaxStacks; ++i)
    digest.by_step.stacks[TextOf(RankDigest::kMaxTextBytes, i)] = groups;
  return digest;
}

// Returns the bytes of a digest whose message has been changed, with a correct checksum.
std::string Changed(const std::function<void(DigestFile*)>& change) {
  DigestFile file;
  std::string bytes = EncodeDigest(FullDigest(), {});
  EXPECT_TRUE(file.ParseFromString(bytes));
  file.clear_crc32c();
  change(&file);
  bytes = file.SerializeAsString();
  const uint32_t crc = format::Crc32c(bytes);
  return bytes + '\x7D' + std::string(reinterpret_cast<const char*>(&crc), sizeof crc);
}

absl::Status StatusOf(const std::string& bytes) {
  return DecodeDigest(bytes, "r3.gmt.digest").status();
}

TEST(DigestBytesTest, EveryFieldSurvives) {
  const std::string bytes = EncodeDigest(FullDigest(), {100, 200, 300});
  const auto stored = DecodeDigest(bytes, "r3.gmt.digest");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->state.bytes, 100u);
  EXPECT_EQ(stored->state.modified_ns, 200);
  EXPECT_EQ(stored->state.ends_crc32c, 300u);
  const RankDigest& digest = stored->digest;
  EXPECT_EQ(digest.rank, 3);
  EXPECT_EQ(digest.host, "node\x1b[1m");
  EXPECT_EQ(digest.others[1].bytes, 17u);
  EXPECT_EQ(digest.leak->eta_ns, 21);
  EXPECT_THAT(digest.by_step.stacks.at("main"), ElementsAre(4, 5, 6));
  // What is encoded again covers the others.
  EXPECT_EQ(EncodeDigest(digest, stored->state), bytes);
}

TEST(DigestBytesTest, UnknownValuesStayUnknown) {
  const auto stored = DecodeDigest(EncodeDigest({}, {}), "r3.gmt.digest");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_FALSE(stored->digest.rank || stored->digest.total_bytes || stored->digest.leak);
}

TEST(DigestBytesTest, LargestDigestIsSmallEnough) {
  const std::string bytes = EncodeDigest(LargestDigest(), {UINT64_MAX, INT64_MAX, UINT32_MAX});
  EXPECT_LE(bytes.size(), kMaxDigestBytes);
  EXPECT_TRUE(StatusOf(bytes).ok()) << StatusOf(bytes);
}

TEST(DigestBytesTest, OtherFilesAreNoDigests) {
  for (const std::string& bytes : {std::string(), std::string("GMTDIGST"), std::string(5000, '\0')})
    EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(bytes))) << StatusOf(bytes);
}

TEST(DigestBytesTest, OtherVersionIsNamed) {
  const absl::Status status = StatusOf(Changed([](DigestFile* file) { file->set_version(9); }));
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("r3.gmt.digest: this digest has version 9, written by gpumemtrace "));
}

TEST(DigestBytesTest, UnknownFieldsAreSkipped) {
  EXPECT_TRUE(StatusOf(Changed([](DigestFile* file) {
                file->GetReflection()->MutableUnknownFields(file)->AddVarint(12, 1);
              })).ok());
}

TEST(DigestBytesTest, ValuesThatNoRecordingHasAreDamage) {
  const std::vector<std::function<void(gmt::RankDigest*)>> changes = {
      [](gmt::RankDigest* rank) { rank->set_peak_bytes(UINT64_MAX); },
      [](gmt::RankDigest* rank) { rank->mutable_stacks(0)->set_bytes(UINT64_MAX); },
      [](gmt::RankDigest* rank) { rank->mutable_others(0)->set_bytes(UINT64_MAX); },
      [](gmt::RankDigest* rank) { rank->mutable_leak()->set_bytes_per_step(1e300); },
      [](gmt::RankDigest* rank) { rank->mutable_leak()->set_bytes_per_step(std::nan("")); },
      [](gmt::RankDigest* rank) { rank->mutable_by_step()->set_steps_per_group(0); },
      [](gmt::RankDigest* rank) { rank->mutable_by_step()->set_steps_per_group(3); },
      [](gmt::RankDigest* rank) { rank->mutable_by_step()->add_peak_bytes(1); },
      [](gmt::RankDigest* rank) { rank->mutable_by_step()->mutable_stacks(0)->clear_bytes(); },
  };
  for (const auto& change : changes) {
    const absl::Status status =
        StatusOf(Changed([&](DigestFile* file) { change(file->mutable_rank()); }));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST(DigestBytesTest, EveryTruncationAndEveryFlippedBitIsNoticed) {
  const std::string bytes = EncodeDigest(FullDigest(), {100, 200, 300});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(StatusOf(bytes.substr(0, size)).ok()) << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(StatusOf(flipped).ok()) << bit;
  }
  EXPECT_FALSE(StatusOf(bytes + "x").ok());
}

// Whatever a digest says, it can be compared and printed.
TEST(DigestBytesTest, MutatedDigestsWithACorrectChecksumAreComparedOrRefused) {
  ForEachSeed(SeedsUpTo(2000), [](uint32_t seed) {
    std::mt19937 random(seed);
    JobDigests job(JobDigests::Keep::kSteps);
    job.Add(FullDigest());
    for (int i = 0; i < 3; ++i) {
      std::string bytes = EncodeDigest(FullDigest(), {});
      bytes.resize(bytes.size() - format::kCrcBytes);
      for (uint32_t change = random() % 4; change > 0; --change)
        bytes[9 + random() % (bytes.size() - 9)] = static_cast<char>(random());
      const uint32_t crc = format::Crc32c(bytes);
      bytes += '\x7D' + std::string(reinterpret_cast<const char*>(&crc), sizeof crc);
      auto stored = DecodeDigest(bytes, "r3.gmt.digest");
      if (stored.ok()) job.Add(std::move(stored->digest));
    }
    const RanksAnswer answer(std::move(job), {});
    EXPECT_FALSE(answer.Text(Terminal{}).empty());
    EXPECT_FALSE(answer.Json().empty());
  });
}

TEST(DigestTextTest, PrintableDigestHasNoControlCharacters) {
  RankDigest digest = FullDigest();
  MakePrintable(digest);
  EXPECT_EQ(digest.host, "node\\x1b[1m");
  EXPECT_TRUE(digest.stacks.contains("other\\n"));
}

TEST(BytesByNameTest, MediansAreThoseOfAllRowsByTheSlowWay) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    std::mt19937 random(seed);
    BytesByName by_name;
    std::vector<std::map<std::string, uint64_t>> rows(1 + random() % 9);
    for (auto& row : rows) {
      for (int name = 0; name < 4; ++name) {
        if (random() % 3 > 0) row["n" + std::to_string(name)] = random() % 5;
      }
      by_name.AddRow(row);
    }
    by_name.FindMedians();
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string before;
      std::map<std::string, uint64_t> seen;
      for (const auto& [name, bytes, median] : by_name.EntriesOf(i)) {
        EXPECT_LT(before, *name);
        before = *name;
        std::vector<uint64_t> values;
        for (const auto& row : rows) values.push_back(row.contains(*name) ? row.at(*name) : 0);
        EXPECT_EQ(median, analysis::LowerMedian(values)) << *name;
        EXPECT_EQ(bytes, values[i]);
        seen[*name] = bytes;
      }
      for (const auto& [name, bytes] : rows[i]) EXPECT_TRUE(seen.contains(name));
    }
  });
}

class DigestFileTest : public testing::Test {
 protected:
  DigestFileTest() {
    std::filesystem::create_directories(folder_);
    PutRecording("first");
  }
  ~DigestFileTest() override { std::filesystem::remove_all(folder_); }

  void PutRecording(const std::string& content) {
    Put(recording_, std::string(format::kFileMagic) + content);
  }
  static void Put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  absl::Status Write() {
    return WriteDigestOf(recording_, FullDigest(), StateOfRecording(recording_).value());
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("gmt_digest." + std::to_string(getpid()));
  const std::string recording_ = folder_ / "r3.gmt", digest_ = folder_ / "r3.gmt.digest";
};

TEST_F(DigestFileTest, DigestIsReadBackUnderTheNameOfItsRecording) {
  EXPECT_TRUE(absl::IsNotFound(ReadDigestOf(recording_).status()));
  ASSERT_TRUE(Write().ok());
  const auto digest = ReadDigestOf(recording_);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->file, recording_);
  EXPECT_EQ(digest->peak_bytes, 24 * kMiB);
  EXPECT_EQ(RecordingOfDigest(digest_), recording_);
  EXPECT_EQ(RecordingOfDigest(recording_), std::nullopt);
}

TEST_F(DigestFileTest, DigestOfAnotherRecordingIsNotUsed) {
  ASSERT_TRUE(Write().ok());
  PutRecording("other");  // as many bytes
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadDigestOf(recording_).status()));
  PutRecording("longer than before");
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadDigestOf(recording_).status()));
  ASSERT_TRUE(Write().ok());
  EXPECT_TRUE(ReadDigestOf(recording_).ok());
}

TEST_F(DigestFileTest, CopyOfARecordingWithAnotherTimeIsTheSame) {
  ASSERT_TRUE(Write().ok());
  std::filesystem::last_write_time(
      recording_, std::filesystem::last_write_time(recording_) + std::chrono::hours(1));
  EXPECT_TRUE(ReadDigestOf(recording_).ok());
}

TEST_F(DigestFileTest, DigestIsReadWithoutItsRecording) {
  ASSERT_TRUE(Write().ok());
  std::filesystem::remove(recording_);
  const auto digest = ReadDigest(digest_);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->file, digest_);
}

TEST_F(DigestFileTest, FileThatIsNoDigestIsKept) {
  Put(digest_, "notes of the user");
  EXPECT_TRUE(absl::IsAlreadyExists(Write()));
  std::string text;
  std::getline(std::ifstream(digest_), text);
  EXPECT_EQ(text, "notes of the user");
}

TEST_F(DigestFileTest, LinkIsNotFollowedToWriteADigest) {
  Put(folder_ / "elsewhere", "notes of the user");
  std::filesystem::create_symlink(folder_ / "elsewhere", digest_);
  EXPECT_TRUE(absl::IsAlreadyExists(Write()));
}

TEST_F(DigestFileTest, DamagedDigestIsReplaced) {
  ASSERT_TRUE(Write().ok());
  std::filesystem::resize_file(digest_, 20);
  EXPECT_TRUE(absl::IsDataLoss(ReadDigestOf(recording_).status()));
  ASSERT_TRUE(Write().ok());
  EXPECT_TRUE(ReadDigestOf(recording_).ok());
}

TEST_F(DigestFileTest, DigestHasTheModeOfItsRecordingAndNothingElseIsLeft) {
  chmod(recording_.c_str(), 0640);
  ASSERT_TRUE(Write().ok());
  struct stat state = {};
  ASSERT_EQ(stat(digest_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0640u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(DigestFileTest, PipeIsNeitherReadNorTakenForARecording) {
  const std::string pipe = folder_ / "pipe.gmt";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(StateOfRecording(pipe).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadDigestOf(pipe).status()));
}

TEST_F(DigestFileTest, EventLogHasNoState) {
  Put(recording_, "{}\n");
  EXPECT_TRUE(absl::IsInvalidArgument(StateOfRecording(recording_).status()));
}

TEST(DigestOfRecordingTest, ManyStacksAndStepsAreBounded) {
  constexpr int kStacks = 3000, kSteps = 1000;
  analysis::EventScript script;
  for (uint64_t i = 0; i < kStacks; ++i) {
    script.Alloc(0x10'0000'0000 + (i << 24), kMiB + 512 * i,
                 {"cudaMalloc", "function_number_" + std::to_string(i), "main"});
  }
  for (int step = 0; step < kSteps; ++step) {
    script.Mark("step", static_cast<uint64_t>(step));
    script.Alloc(0x9000'0000'0000, kMiB, {"cudaMalloc", "step_" + std::to_string(step), "main"});
    script.Free(0x9000'0000'0000);
  }
  const auto recording = RecordingSoFar("run.gmt", script.Build(), script.definitions());
  const RankDigest digest = MakeDigest(*recording);
  EXPECT_EQ(digest.stacks.size(), RankDigest::kMaxStacks);
  uint64_t sum = digest.other_stacks_bytes;
  for (const auto& [label, bytes] : digest.stacks) sum += bytes;
  EXPECT_EQ(sum, digest.peak_bytes);
  EXPECT_LE(EncodeDigest(digest, {}).size(), kMaxDigestBytes);
  // The lines that are listed are those with most bytes.
  const auto least = std::min_element(digest.stacks.begin(), digest.stacks.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_GE(least->second, kMiB + 512 * (kStacks - RankDigest::kMaxStacks));

  EXPECT_GT(digest.steps, 900u);
  EXPECT_EQ(digest.by_step.steps_per_group, 16u);
  EXPECT_LE(digest.by_step.peak_bytes.size(), StepGroups::kMost);
  EXPECT_EQ(digest.by_step.stacks.size(), StepGroups::kMaxStacks);
  for (const auto& [label, bytes] : digest.by_step.stacks)
    EXPECT_EQ(bytes.size(), digest.by_step.peak_bytes.size());
}

TEST(DigestOfRecordingTest, LongLinesAreNotCutInsideACharacter) {
  for (const size_t before : {0, 1, 2}) {
    std::string function(before, 'x');
    for (int i = 0; i < 200; ++i) function += "\u2192";  // three bytes
    analysis::EventScript script;
    script.Alloc(0x10'0000'0000, kMiB, {"cudaMalloc", function, "main"});
    const auto recording = RecordingSoFar("run.gmt", script.Build(), script.definitions());
    const RankDigest digest = MakeDigest(*recording);
    ASSERT_EQ(digest.stacks.size(), 1u);
    const std::string& line = digest.stacks.begin()->first;
    EXPECT_LE(line.size(), RankDigest::kMaxTextBytes);
    EXPECT_GT(line.size(), RankDigest::kMaxTextBytes - 3);
    EXPECT_EQ(format::Printable(line), line);
  }
}

}  // namespace
}  // namespace gmt::answers
