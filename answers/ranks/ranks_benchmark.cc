// Writes digests of a job of many ranks, for measuring `ranks`.
//
// Usage: ranks_benchmark COUNT FOLDER [RECORDING...]
//
// The ranks have the digests of the recordings in turn, with other numbers: everything by up to 1 %
// more, and a tenth more in one of a hundred ranks. Without a recording, every digest is as large
// as it can become, with lines of which half are those of the other ranks. Prints the bytes of an
// average digest as JSON.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "answers/ranks/digest_file.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

class RankVariation {
 public:
  explicit RankVariation(uint32_t rank)
      : random_(rank), share_(rank % 100 == 99 ? 0.1 : 0.01 * Random()) {}

  void Apply(RankDigest& digest) {
    Scale(digest.peak_bytes);
    Scale(digest.reserved_bytes);
    for (uint64_t& bytes : digest.categories) Scale(bytes);
    for (auto& [label, bytes] : digest.stacks) Scale(bytes);
    for (auto& [name, bytes] : digest.libraries) Scale(bytes);
    for (uint64_t& bytes : digest.by_step.peak_bytes) Scale(bytes);
    for (StepGroups::Parts* parts : {&digest.by_step.categories, &digest.by_step.stacks}) {
      for (auto& [name, part] : *parts) {
        for (uint64_t& bytes : part) Scale(bytes);
      }
    }
  }

 private:
  double Random() { return std::uniform_real_distribution<>(0, 1)(random_); }
  void Scale(uint64_t& bytes) {
    bytes += static_cast<uint64_t>(share_ * Random() * static_cast<double>(bytes));
  }

  std::mt19937 random_;
  const double share_;
};

std::string LongName(size_t number) {
  std::string name = absl::StrCat("function_", number, " ");
  name.resize(RankDigest::kMaxTextBytes, 'x');
  return name;
}

RankDigest LargestDigestOf(uint32_t rank) {
  RankDigest digest;
  digest.steps = 1000;
  digest.by_step.steps_per_group = 16;
  digest.by_step.peak_bytes.assign(StepGroups::kMost, 60 * kGiB);
  digest.peak_bytes = 64 * kGiB;
  for (size_t i = 0; i < RankDigest::kMaxStacks; ++i) {
    const size_t number = i % 2 == 0 ? i : i + RankDigest::kMaxStacks * (1 + rank);
    digest.stacks[LongName(number)] = 256 * kMiB;
  }
  for (size_t i = 0; i < RankDigest::kMaxLibraries; ++i) digest.libraries[LongName(i)] = kMiB;
  for (size_t i = 0; i < StepGroups::kMaxStacks; ++i)
    digest.by_step.stacks[LongName(2 * i)].assign(StepGroups::kMost, 3 * kGiB);
  return digest;
}

int WriteJob(uint32_t count, const std::string& folder, const std::vector<std::string>& files) {
  std::vector<RankDigest> digests;
  for (const std::string& file : files) {
    const auto recording = LoadRecording(file, nullptr);
    if (!recording.ok()) {
      std::fprintf(stderr, "%s\n", std::string(recording.status().message()).c_str());
      return 1;
    }
    digests.push_back(MakeDigest(**recording));
  }
  std::filesystem::create_directories(folder);
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < count; ++rank) {
    RankDigest digest = digests.empty() ? LargestDigestOf(rank) : digests[rank % digests.size()];
    digest.rank = static_cast<int32_t>(rank);
    digest.host = absl::StrCat("node", rank / 8);
    digest.device = static_cast<int32_t>(rank % 8);
    digest.pid = 1000 + rank % 8;
    RankVariation(rank).Apply(digest);
    const std::string encoded = EncodeDigest(digest, {});
    std::ofstream(DigestPathOf(absl::StrCat(folder, "/r", rank, ".gmt")), std::ios::binary)
        << encoded;
    bytes += encoded.size();
  }
  std::printf("{\"ranks\": %u, \"bytes_per_digest\": %.0f}\n", count,
              static_cast<double>(bytes) / count);
  return 0;
}

}  // namespace
}  // namespace gmt::answers

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: ranks_benchmark COUNT FOLDER [RECORDING...]\n");
    return 2;
  }
  return gmt::answers::WriteJob(static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)), argv[2],
                                {argv + 3, argv + argc});
}
