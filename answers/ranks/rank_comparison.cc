#include "answers/ranks/rank_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::Category;

constexpr double kMinShare = 0.02;  // share of the median
constexpr double kDeviations = 3, kMadToDeviation = 1.4826;
constexpr size_t kCauses = 4;

// The lower one of two values in the middle: of two ranks, the one with more memory differs.
uint64_t MedianOf(std::vector<uint64_t> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t Minus(uint64_t a, uint64_t b) { return static_cast<int64_t>(a) - static_cast<int64_t>(b); }
uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

// A difference with its text.
struct RankCause {
  uint64_t bytes;
  std::string text;
};

class Comparer {
 public:
  explicit Comparer(std::vector<RankDigest> digests) {
    std::stable_sort(digests.begin(), digests.end(), [](const RankDigest& a, const RankDigest& b) {
      constexpr int32_t kLast = std::numeric_limits<int32_t>::max();
      return std::pair(a.rank.value_or(kLast), a.file) < std::pair(b.rank.value_or(kLast), b.file);
    });
    for (RankDigest& digest : digests) {
      RankRow row;
      row.name = digest.rank ? absl::StrCat("rank ", *digest.rank) : digest.file;
      row.digest = std::move(digest);
      result_.rows.push_back(std::move(row));
    }
  }

  RankComparison Compare() && {
    FindPeaks();
    for (RankRow& row : result_.rows) Judge(row);
    std::vector<size_t>& outliers = result_.outliers;
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      if (result_.rows[i].differs) outliers.push_back(i);
    }
    std::stable_sort(outliers.begin(), outliers.end(), [&](size_t a, size_t b) {
      return std::abs(result_.rows[a].delta_bytes) > std::abs(result_.rows[b].delta_bytes);
    });
    FindNextToFail();
    return std::move(result_);
  }

 private:
  template <typename Value>
  uint64_t Median(Value value) const {
    std::vector<uint64_t> values;
    for (const RankRow& row : result_.rows) values.push_back(value(row.digest));
    return MedianOf(std::move(values));
  }
  template <typename Has>
  bool MostHave(Has has) const {
    const auto count = std::count_if(result_.rows.begin(), result_.rows.end(),
                                     [&](const RankRow& row) { return has(row.digest); });
    return 2 * static_cast<size_t>(count) > result_.rows.size();
  }

  void FindPeaks() {
    const auto peak = [](const RankDigest& digest) { return digest.peak_bytes; };
    const uint64_t median = Median(peak);
    result_.median_peak_bytes = median;
    result_.least_peak_bytes = std::numeric_limits<uint64_t>::max();
    for (const RankRow& row : result_.rows) {
      result_.least_peak_bytes = std::min(result_.least_peak_bytes, row.digest.peak_bytes);
      result_.most_peak_bytes = std::max(result_.most_peak_bytes, row.digest.peak_bytes);
    }
    // With fewer than four ranks, the usual distance would be that of one rank.
    const uint64_t usual = result_.rows.size() < 4 ? 0 : Median([median](const RankDigest& digest) {
      return Distance(digest.peak_bytes, median);
    });
    threshold_ = std::max(
        {kMinDifference, static_cast<uint64_t>(kMinShare * static_cast<double>(median)),
         static_cast<uint64_t>(kDeviations * kMadToDeviation * static_cast<double>(usual))});
  }

  void Judge(RankRow& row) const {
    const RankDigest& digest = row.digest;
    row.delta_bytes = Minus(digest.peak_bytes, result_.median_peak_bytes);
    std::vector<RankCause> causes;
    const bool is_far = Distance(digest.peak_bytes, result_.median_peak_bytes) > threshold_;
    if (is_far) AddParts(digest, row.delta_bytes > 0, causes);
    AddContexts(digest, causes);
    if (digest.leak && !MostHave([](const RankDigest& d) { return d.leak.has_value(); }))
      causes.push_back({std::numeric_limits<uint64_t>::max(), LeakText(*digest.leak)});
    if (digest.failures > 0 && !MostHave([](const RankDigest& d) { return d.failures > 0; }))
      causes.push_back({0, "ran out of memory"});
    if (digest.retries > 0 && !MostHave([](const RankDigest& d) { return d.retries > 0; }))
      causes.push_back(
          {0, absl::StrCat(Count(digest.retries), digest.retries == 1 ? " retry" : " retries",
                           " of its allocator")});
    std::stable_sort(causes.begin(), causes.end(),
                     [](const RankCause& a, const RankCause& b) { return a.bytes > b.bytes; });
    row.differs = is_far || !causes.empty();
    for (size_t i = 0; i < std::min(causes.size(), kCauses); ++i)
      row.causes.push_back(causes[i].text);
    const uint64_t steps = Median([](const RankDigest& d) { return d.steps; });
    if (is_far && digest.steps != steps)
      row.causes.push_back(
          absl::StrCat("took ", Plural(digest.steps, "step"), ", the others ", steps));
  }

  static std::string LeakText(const RankDigest::Leak& leak) {
    return absl::StrCat(leak.is_likely ? "probably leaks " : "leaks ",
                        Bytes(static_cast<uint64_t>(std::max(0.0, leak.bytes_per_step))),
                        " per step", leak.place.empty() ? "" : absl::StrCat(" at ", leak.place));
  }

  // Categories and libraries that account for the difference of a peak.
  void AddParts(const RankDigest& digest, bool is_more, std::vector<RankCause>& causes) const {
    const uint64_t least = threshold_ / 4;
    uint64_t of_model = 0;
    for (size_t i = 0; i < analysis::kCategories; ++i) {
      const auto category = static_cast<Category>(i);
      const uint64_t usual = Median([i](const RankDigest& d) { return d.categories[i]; });
      const int64_t delta = Minus(digest.categories[i], usual);
      if ((delta > 0) != is_more || Distance(digest.categories[i], usual) < least) continue;
      const bool is_of_model = category == Category::kParameters ||
                               category == Category::kGradients ||
                               category == Category::kOptimizerState;
      if (is_of_model) {
        of_model += Distance(digest.categories[i], usual);
      } else if (category != Category::kOtherLibraries && category != Category::kUnknown) {
        causes.push_back({Distance(digest.categories[i], usual),
                          absl::StrCat(TextOf(category), " ", SignedBytes(delta))});
      }
    }
    if (of_model > 0) {
      causes.push_back(
          {of_model, absl::StrCat("parameters, gradients and optimizer state ",
                                  SignedBytes(is_more ? static_cast<int64_t>(of_model)
                                                      : -static_cast<int64_t>(of_model)),
                                  ": its share of the model has another size")});
    }
    std::set<std::string> names;
    for (const RankRow& row : result_.rows) {
      for (const auto& [name, bytes] : row.digest.libraries) names.insert(name);
    }
    for (const std::string& name : names) {
      const uint64_t usual =
          Median([&](const RankDigest& d) { return ValueIn(d.libraries, name); });
      const uint64_t mine = ValueIn(digest.libraries, name);
      if (Distance(mine, usual) < least || (mine > usual) != is_more) continue;
      const char* meaning = name == "NCCL" && is_more ? ": a further communicator" : "";
      causes.push_back({Distance(mine, usual),
                        absl::StrCat(name, " ", SignedBytes(Minus(mine, usual)), meaning)});
    }
    AddStack(digest, is_more, least, causes);
  }

  // Names the line that differs most.
  void AddStack(const RankDigest& digest, bool is_more, uint64_t least,
                std::vector<RankCause>& causes) const {
    std::set<std::string> labels;
    for (const RankRow& row : result_.rows) {
      for (const auto& [label, bytes] : row.digest.stacks) labels.insert(label);
    }
    uint64_t most = 0;
    int64_t change = 0;
    std::string place;
    for (const std::string& label : labels) {
      const uint64_t usual = Median([&](const RankDigest& d) { return ValueIn(d.stacks, label); });
      const uint64_t mine = ValueIn(digest.stacks, label);
      if ((mine > usual) != is_more || Distance(mine, usual) <= most) continue;
      most = Distance(mine, usual);
      change = Minus(mine, usual);
      place = label;
    }
    if (most >= least) causes.push_back({most, absl::StrCat(SignedBytes(change), " by ", place)});
  }

  static uint64_t ValueIn(const std::map<std::string, uint64_t>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? 0 : found->second;
  }

  // A process that uses a GPU before it selects its own has a context on the first one.
  void AddContexts(const RankDigest& digest, std::vector<RankCause>& causes) const {
    std::vector<std::string> ranks;
    uint64_t bytes = 0;
    for (const RankDigest::Process& process : digest.others) {
      const auto other =
          std::find_if(result_.rows.begin(), result_.rows.end(), [&](const RankRow& row) {
            return row.digest.pid == process.pid && row.digest.host == digest.host;
          });
      if (other == result_.rows.end() || other->digest.device == digest.device) continue;
      ranks.push_back(other->digest.rank ? absl::StrCat(*other->digest.rank) : other->name);
      bytes += process.bytes;
    }
    if (ranks.empty()) return;
    causes.push_back(
        {bytes,
         absl::StrCat("contexts of ", ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "), " on its GPU: ", Bytes(bytes),
                      "; they must call torch.cuda.set_device(local_rank) before they use a GPU")});
  }

  void FindNextToFail() {
    std::optional<int64_t> soonest, least_free;
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      const RankDigest& digest = result_.rows[i].digest;
      if (digest.leak && digest.leak->eta_ns && (!soonest || *digest.leak->eta_ns < *soonest)) {
        soonest = digest.leak->eta_ns;
        result_.next_to_fail = i;
        result_.why_next = absl::StrCat("in ", Duration(*soonest), " at its rate");
      }
    }
    if (soonest) return;
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      const RankDigest& digest = result_.rows[i].digest;
      if (!digest.total_bytes || digest.used_bytes == 0) continue;
      const int64_t free = Minus(*digest.total_bytes, digest.used_bytes);
      if (least_free && free >= *least_free) continue;
      least_free = free;
      result_.next_to_fail = i;
      result_.why_next = absl::StrCat(Bytes(static_cast<uint64_t>(std::max<int64_t>(0, free))),
                                      " free at its peak");
    }
  }

  RankComparison result_;
  uint64_t threshold_ = 0;
};

}  // namespace

RankComparison CompareRanks(std::vector<RankDigest> digests) {
  return Comparer(std::move(digests)).Compare();
}

}  // namespace gmt::answers
