#include "viewer/served/served_ranks.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "answers/ranks/digest_file.h"
#include "answers/ranks/ranks_answer.h"
#include "viewer/questions/questions_json.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Other questions wait for a thread that makes digests.
constexpr std::chrono::milliseconds kMakingTime{500};

Json RankRowJson(const answers::RankRow& row, size_t file, uint64_t steps_per_group) {
  return {{"file", file},
          {"name", row.name},
          {"peak_bytes", row.digest.peak_bytes},
          {"steps", row.digest.steps},
          {"step_peaks", answers::PeaksOfGroups(row.digest.by_step, steps_per_group)},
          {"differs", row.differs},
          {"causes", row.causes}};
}

std::string WhyMissing(const ServedRecording* recording) {
  return recording == nullptr ? "it is still being recorded"
                              : std::string(recording->WhyNot().message());
}

}  // namespace

ServedRanks::ServedRanks(std::vector<std::shared_ptr<ServedRecording>> files) {
  for (std::shared_ptr<ServedRecording>& file : files)
    files_.push_back({std::move(file), std::nullopt});
}

ServedRanks::~ServedRanks() = default;

void ServedRanks::ReadStoredDigests() {
  if (std::exchange(has_read_stored_, true)) return;
  for (File& file : files_) {
    if (file.recording == nullptr) continue;
    auto stored = answers::ReadDigestOf(file.recording->path());
    if (stored.ok()) file.digest = *std::move(stored);
  }
}

bool ServedRanks::MakeDigests() {
  const Clock::time_point begin = Clock::now();
  for (File& file : files_) {
    if (file.digest || file.recording == nullptr || !file.recording->is_ready()) continue;
    if (Clock::now() - begin > kMakingTime) return true;
    // A recording that is ready can be examined.
    (void)file.recording->Examine([&](const answers::Recording& recording, Questions&) {
      file.digest = answers::MakeDigest(recording);
      return absl::OkStatus();
    });
    compared_.reset();
  }
  return false;
}

Json ServedRanks::CompareKnown() const {
  answers::JobDigests digests;
  std::vector<size_t> numbers;  // of the files that are compared
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].digest) continue;
    answers::RankDigest digest = *files_[i].digest;
    answers::MakePrintable(digest);
    digests.Add(std::move(digest));
    numbers.push_back(i);
  }
  Json rows = Json::array();
  if (digests.empty()) {
    return {{"headline", ""},         {"steps_per_group", 1},
            {"median_peak_bytes", 0}, {"median_step_peaks", rows},
            {"rows", rows},           {"outliers", rows}};
  }
  const answers::RanksAnswer answer(std::move(digests), {});
  const answers::RankComparison& comparison = answer.comparison();
  for (const answers::RankRow& row : comparison.rows)
    rows.push_back(RankRowJson(row, numbers[row.added], comparison.steps_per_group));
  return {{"headline", answer.Verdict()},
          {"steps_per_group", comparison.steps_per_group},
          {"median_peak_bytes", comparison.peak_bytes.median},
          {"median_step_peaks", comparison.median_step_peaks},
          {"rows", std::move(rows)},
          {"outliers", comparison.outliers}};
}

std::string ServedRanks::Answer() {
  const std::lock_guard lock(mutex_);
  ReadStoredDigests();
  const bool has_more = MakeDigests();
  if (compared_ == nullptr) compared_ = std::make_unique<Json>(CompareKnown());
  Json json = *compared_;
  json["missing"] = Json::array();
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].digest)
      json["missing"].push_back({{"file", i}, {"why", WhyMissing(files_[i].recording.get())}});
  }
  json["has_more"] = has_more;
  return Dump(json);
}

}  // namespace gmt::viewer
