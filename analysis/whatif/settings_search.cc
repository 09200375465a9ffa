#include "analysis/whatif/settings_search.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/parallel.h"
#include "analysis/whatif/replay.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kMaxRequests = 300'000'000;  // that all replays may take together
constexpr uint64_t kMinSettings = 8;            // which are tried however long the recording is
constexpr uint64_t kWorthPercent = 1;           // what another option has to save

// The default of each option comes first: of equally good settings, the first ones are found.
constexpr uint64_t kSplitLimits[] = {
    AllocatorSettings::kUnlimited, 128 * kMiB, 512 * kMiB, 64 * kMiB, 256 * kMiB, 32 * kMiB, kGiB};
constexpr uint32_t kDivisions[] = {0, 4, 8, 2, 16};
constexpr uint64_t kSegments[] = {20 * kMiB, 64 * kMiB, 32 * kMiB, 128 * kMiB};
constexpr uint64_t kRoundings[] = {20 * kMiB, 64 * kMiB, 256 * kMiB};
constexpr double kGarbageThresholds[] = {0, 0.8, 0.6};

class SettingsSearcher {
 public:
  explicit SettingsSearcher(const AllocatorHistory& history) : history_(history) {
    const uint64_t replays = kMaxRequests / std::max<uint64_t>(history.requests.size(), 1);
    left_ = std::clamp(replays, kMinSettings, kMaxSettings);
  }

  SettingsSearch Search() && {
    const auto recorded = PeakReserved(history_, history_.settings);
    if (!recorded) return search_;
    search_.recorded_reserved = least_ = *recorded;
    tried_ = {history_.settings};
    AllocatorSettings base = history_.settings;
    while (Improve(base)) base = best_;
    Confirm();
    return search_;
  }

 private:
  // Tries all settings that differ from `base` in one option. Returns whether the best one is worth
  // it.
  bool Improve(const AllocatorSettings& base) {
    std::vector<AllocatorSettings> candidates = Neighbours(base);
    candidates.resize(std::min<size_t>(candidates.size(), left_));
    left_ -= candidates.size();
    search_.tried += candidates.size();
    std::vector<std::optional<uint64_t>> reserved(candidates.size());
    std::atomic<uint64_t> most = least_;
    ForEachInParallel(candidates.size(), [&](size_t i) {
      reserved[i] = PeakReserved(history_, candidates[i], most);
      uint64_t before = most;
      while (reserved[i] && *reserved[i] < before &&
             !most.compare_exchange_weak(before, *reserved[i])) {
      }
    });
    const uint64_t before = least_;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!reserved[i] || *reserved[i] >= least_) continue;
      least_ = *reserved[i];
      best_ = candidates[i];
    }
    const uint64_t saved = before - least_;
    return saved > 0 && saved * 100 >= search_.recorded_reserved * kWorthPercent;
  }

  // The most promising ones first.
  std::vector<AllocatorSettings> Neighbours(const AllocatorSettings& base) {
    std::vector<AllocatorSettings> found;
    const auto add = [&](auto AllocatorSettings::*option, const auto& value) {
      AllocatorSettings settings = base;
      settings.*option = value;
      // Releases of PyTorch have had errors with this pair.
      if (settings.expandable_segments && settings.max_split_bytes != AllocatorSettings::kUnlimited)
        return;
      if (std::find(tried_.begin(), tried_.end(), settings) != tried_.end()) return;
      tried_.push_back(settings);
      found.push_back(settings);
    };
    add(&AllocatorSettings::expandable_segments, !base.expandable_segments);
    for (const uint64_t bytes : kSplitLimits) add(&AllocatorSettings::max_split_bytes, bytes);
    for (const uint32_t divisions : kDivisions) {
      decltype(AllocatorSettings::roundup_divisions) all;
      all.fill(divisions);
      add(&AllocatorSettings::roundup_divisions, all);
    }
    if (Has("large_segment_size_mb")) {
      for (const uint64_t bytes : kSegments) add(&AllocatorSettings::large_segment_bytes, bytes);
    }
    if (Has("max_non_split_rounding_mb") && base.max_split_bytes != AllocatorSettings::kUnlimited) {
      for (const uint64_t bytes : kRoundings)
        add(&AllocatorSettings::max_non_split_rounding_bytes, bytes);
    }
    if (base.memory_fraction < 1) {  // otherwise PyTorch ignores it
      for (const double threshold : kGarbageThresholds)
        add(&AllocatorSettings::gc_threshold, threshold);
    }
    return found;
  }

  bool Has(std::string_view option) const {
    const std::optional<TorchVersion> first = FirstWithOption(option);
    return !first || (history_.torch && *history_.torch >= *first);
  }

  void Confirm() {
    if (least_ >= search_.recorded_reserved) return;
    FoundSettings found{best_, best_.Text(), least_, 0};
    if (!history_.other_options.empty()) {
      absl::StrAppend(&found.options, found.options.empty() ? "" : ",", history_.other_options);
    }
    found.worst_reserved = WorstReserved(history_, {"", best_, AllocatorSettings::kUnlimited});
    if (found.worst_reserved < search_.recorded_reserved) search_.best = std::move(found);
  }

  const AllocatorHistory& history_;
  uint64_t left_ = 0;  // settings that may still be tried
  std::vector<AllocatorSettings> tried_;
  AllocatorSettings best_;
  uint64_t least_ = 0;  // reserved with `best_`, or as recorded
  SettingsSearch search_;
};

}  // namespace

SettingsSearch SearchSettings(const AllocatorHistory& history) {
  return SettingsSearcher(history).Search();
}

}  // namespace gmt::analysis
