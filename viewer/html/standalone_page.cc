#include "viewer/html/standalone_page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "viewer/html/file_parts.h"
#include "viewer/html/lane_slab.h"
#include "viewer/html/lane_walk.h"
#include "viewer/html/predictions.h"
#include "viewer/html/standalone_file.h"
#include "viewer/html/standalone_html.h"
#include "viewer/questions/questions_json.h"

namespace gmt::viewer {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMegabyte = 1'000'000;

// The share of the file that event times may take, and the divisor of the recording's length that
// is the first tolerance.
constexpr double kClockShare = 0.2;
constexpr int64_t kClockDivisor = 4'000'000;

// Formats with two decimals, rounded up, so that the printed limit is sufficient.
std::string MegabytesUp(uint64_t bytes) {
  constexpr uint64_t kHundredth = kMegabyte / 100;
  const uint64_t hundredths = (bytes + kHundredth - 1) / kHundredth;
  return absl::StrFormat("%d.%02d", hundredths / 100, hundredths % 100);
}

DataPart JsonPart(std::string name, const ordered_json& json) {
  return {std::move(name), Gzip(Dump(json))};
}

class StandalonePageMaker {
 public:
  StandalonePageMaker(std::string_view page, std::string_view version,
                      const std::vector<StandaloneFile>& files, uint64_t max_bytes)
      : page_(page), version_(version), files_(files), max_bytes_(max_bytes) {
    CountSizes();
  }

  absl::StatusOr<StandalonePage> Make(const ordered_json& about_several) {
    for (size_t f = 0; f < files_.size(); ++f) AddFixed(f);
    for (const auto& [name, answer] : about_several.items())
      fixed_.push_back(JsonPart(name, answer));
    AddClocks();
    // No file of that size can hold more blocks than this, so trying with all blocks would be
    // pointless.
    uint64_t smaller_than = ThresholdFor(max_bytes_ / kMinBytesPerBlock);
    for (;;) {
      std::vector<DataPart> parts = Parts(smaller_than);
      const uint64_t size = StandaloneSize(page_, Title(), parts);
      if (size <= max_bytes_) return Finish(std::move(parts), smaller_than);
      if (KeptBlocks(smaller_than) == 0) return TooSmall(size);
      smaller_than = NextThreshold(smaller_than, size, SizeWithoutBlocks());
    }
  }

 private:
  static constexpr uint64_t kMinBytesPerBlock = 2;

  void CountSizes() {
    for (const StandaloneFile& file : files_) {
      const analysis::Rows& rows = file.recording->trace().rows;
      for (const Lane& lane : file.index->lanes()) {
        for (analysis::RowId row = 0; row < rows.count(); ++row) {
          if (IsIn(lane, rows, row)) ++blocks_of_size_[rows.size[row]];
        }
      }
    }
  }

  uint64_t KeptBlocks(uint64_t smaller_than) const {
    uint64_t kept = 0;
    for (auto at = blocks_of_size_.lower_bound(smaller_than); at != blocks_of_size_.end(); ++at) {
      kept += at->second;
    }
    return kept;
  }

  // Returns the lowest threshold that keeps at most `blocks` blocks.
  uint64_t ThresholdFor(uint64_t blocks) const {
    uint64_t kept = 0;
    for (auto at = blocks_of_size_.rbegin(); at != blocks_of_size_.rend(); ++at) {
      kept += at->second;
      if (kept > blocks) return at->first + 1;
    }
    return 0;
  }

  uint64_t NextThreshold(uint64_t last, uint64_t size, uint64_t without_blocks) const {
    const double room =
        max_bytes_ > without_blocks ? static_cast<double>(max_bytes_ - without_blocks) : 0;
    const double used =
        static_cast<double>(std::max<uint64_t>(size - std::min(size, without_blocks), 1));
    const auto wanted =
        static_cast<uint64_t>(static_cast<double>(KeptBlocks(last)) * std::min(0.95, room / used));
    // At least the smallest size still kept is dropped.
    const auto smallest = blocks_of_size_.lower_bound(last);
    return std::max(ThresholdFor(wanted),
                    smallest == blocks_of_size_.end() ? last + 1 : smallest->first + 1);
  }

  void AddFixed(size_t f) {
    const StandaloneFile& file = files_[f];
    fixed_.push_back(JsonPart(absl::StrCat(f, "/texts"), Texts(file)));
    auto answers = ordered_json::object();
    for (const ordered_json& answer : file.answers) answers[answer.value("name", "")] = answer;
    fixed_.push_back(JsonPart(absl::StrCat(f, "/answers"), answers));
    fixed_.push_back(JsonPart(absl::StrCat(f, "/segments"), SegmentTable(file)));
    fixed_.push_back(JsonPart(absl::StrCat(f, "/events"), EventTable(file)));
    fixed_.push_back(JsonPart(absl::StrCat(f, "/sources"), SourceTable(file)));
    fixed_.push_back(JsonPart(absl::StrCat(f, "/predictions"), PredictionTable(file)));
  }

  void AddClocks() {
    for (size_t f = 0; f < files_.size(); ++f) {
      const analysis::Trace& trace = files_[f].recording->trace();
      const auto share = static_cast<uint64_t>(static_cast<double>(max_bytes_) * 0.75 *
                                               kClockShare / static_cast<double>(files_.size()));
      int64_t tolerance = 0;
      DataPart part;
      for (;;) {
        part = {absl::StrCat(f, "/clock"), Gzip(MakeClockSlab(trace, tolerance))};
        if (part.gzipped.size() <= share || tolerance >= trace.end_t_ns) break;
        tolerance = std::max<int64_t>({1, tolerance * 4, trace.end_t_ns / kClockDivisor});
      }
      time_error_ns_ = std::max(time_error_ns_, tolerance);
      fixed_.push_back(std::move(part));
    }
  }

  std::vector<DataPart> Parts(uint64_t smaller_than) {
    std::vector<DataPart> parts;
    auto metas = ordered_json::array();
    omitted_blocks_ = 0;
    for (size_t f = 0; f < files_.size(); ++f) {
      ordered_json omitted = nullptr;
      AddFile(f, smaller_than, &parts, &omitted);
      metas.push_back(files_[f].meta);
      metas.back()["file"] = f;
      metas.back()["omitted"] = std::move(omitted);
    }
    parts.insert(parts.begin(), JsonPart("meta", {{"protocol", 1},
                                                  {"version", version_},
                                                  {"origin", "file"},
                                                  {"files", std::move(metas)}}));
    parts.insert(parts.end(), fixed_.begin(), fixed_.end());
    return parts;
  }

  void AddFile(size_t f, uint64_t smaller_than, std::vector<DataPart>* parts,
               ordered_json* omitted) {
    const StandaloneFile& file = files_[f];
    absl::flat_hash_set<uint32_t> stacks;
    for (const char* name : {"ooms"}) {
      if (!file.meta.contains(name)) continue;
      for (const auto& oom : file.meta[name]) stacks.insert(oom.value("stack", 0u));
    }
    uint64_t blocks = 0, at_peak = 0;
    for (uint32_t lane = 0; lane < file.index->lanes().size(); ++lane) {
      const LaneSlab made = MakeLaneSlab(file, lane, smaller_than, &stacks);
      parts->push_back({absl::StrCat(f, "/lane/", lane), Gzip(made.bytes)});
      blocks += made.omitted_blocks;
      // Heaps are layers, so lanes are not summed; the lane that is shown first counts.
      if (lane == 0) at_peak = made.omitted_at_peak;
    }
    stacks.erase(0);
    std::vector<uint32_t> sorted(stacks.begin(), stacks.end());
    std::sort(sorted.begin(), sorted.end());
    parts->push_back(JsonPart(absl::StrCat(f, "/stacks"), StackTable(file, sorted)));
    omitted_blocks_ += blocks;
    if (blocks > 0 || time_error_ns_ > 0) {
      *omitted = {{"blocks", blocks},
                  {"smaller_than", blocks > 0 ? smaller_than : 0},
                  {"peak_bytes", at_peak},
                  {"time_error_ns", time_error_ns_}};
    }
  }

  // Computed once, because it costs a full encoding.
  uint64_t SizeWithoutBlocks() {
    if (!size_without_blocks_)
      size_without_blocks_ = StandaloneSize(page_, Title(), Parts(UINT64_MAX));
    return size_without_blocks_;
  }

  absl::Status TooSmall(uint64_t size) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("even without blocks the page needs ", MegabytesUp(size),
                     " MB; allow that with --max-mb, export fewer files, or open them with: "
                     "gpumemtrace view"));
  }

  std::string Title() const {
    std::vector<std::string> names;
    for (const StandaloneFile& file : files_) names.push_back(file.meta.value("name", ""));
    return absl::StrCat(absl::StrJoin(names, ", "), " - gpumemtrace");
  }

  absl::StatusOr<StandalonePage> Finish(std::vector<DataPart> parts, uint64_t smaller_than) const {
    StandalonePage made;
    made.html = StandaloneHtml(page_, Title(), parts);
    if (made.html.empty()) return absl::InternalError("the page in this program is invalid");
    made.blocks = KeptBlocks(smaller_than);
    made.omitted_blocks = omitted_blocks_;
    made.smaller_than = omitted_blocks_ > 0 ? smaller_than : 0;
    made.time_error_ns = time_error_ns_;
    return made;
  }

  const std::string_view page_, version_;
  const std::vector<StandaloneFile>& files_;
  const uint64_t max_bytes_;
  std::map<uint64_t, uint64_t> blocks_of_size_;
  std::vector<DataPart> fixed_;
  int64_t time_error_ns_ = 0;
  uint64_t omitted_blocks_ = 0, size_without_blocks_ = 0;
};

}  // namespace

uint64_t DefaultStandaloneSize(uint64_t events) {
  return std::clamp<uint64_t>(events * 5, 5 * kMegabyte, 20 * kMegabyte);
}

absl::StatusOr<StandalonePage> MakeStandalonePage(std::string_view page, std::string_view version,
                                                  const std::vector<StandaloneFile>& files,
                                                  const ordered_json& about_several,
                                                  uint64_t max_bytes) {
  return StandalonePageMaker(page, version, files, max_bytes).Make(about_several);
}

}  // namespace gmt::viewer
