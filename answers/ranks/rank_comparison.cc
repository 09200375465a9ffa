#include "answers/ranks/rank_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/median.h"
#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::Category;

constexpr double kMinShare = 0.02;  // share of the median
constexpr double kDeviations = 3, kMadToDeviation = 1.4826;
constexpr size_t kCauses = 4;

int64_t Minus(uint64_t a, uint64_t b) { return static_cast<int64_t>(a) - static_cast<int64_t>(b); }
uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

// A difference with its text.
struct RankCause {
  uint64_t bytes;
  std::string text;
};

// What the rank held for collectives beyond what it holds in its last steps, if it held that in one
// stretch of steps.
uint64_t LateBytes(const StepGroups& by_step) {
  const auto found = by_step.categories.find(std::string(NameOf(Category::kCommunication)));
  if (found == by_step.categories.end() || found->second.empty()) return 0;
  const std::vector<uint64_t>& held = found->second;
  const auto most = std::max_element(held.begin(), held.end());
  const uint64_t late = *most - held.back();
  const auto is_late = [&](uint64_t bytes) { return bytes > held.back() + late / 2; };
  const auto end = std::find_if_not(most, held.end(), is_late);
  // `most` is the first of the stretch that has so much, but not always its first.
  auto begin = most;
  while (begin != held.begin() && is_late(*std::prev(begin))) --begin;
  const bool is_once =
      std::none_of(held.begin(), begin, is_late) && std::none_of(end, held.end(), is_late);
  return is_once ? late : 0;
}

// A process is known by its machine and its number.
using HostPid = std::pair<std::string, uint64_t>;

}  // namespace

class RankComparer {
 public:
  explicit RankComparer(JobDigests digests)
      : stacks_(std::move(digests.stacks_)),
        libraries_(std::move(digests.libraries_)),
        late_bytes_(std::move(digests.late_bytes_)) {
    result_.has_steps = digests.keep_ == JobDigests::Keep::kSteps;
    const std::vector<RankDigest>& all = digests.digests_;
    order_.resize(all.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      constexpr int32_t kLast = std::numeric_limits<int32_t>::max();
      return std::pair(all[a].rank.value_or(kLast), std::string_view(all[a].file)) <
             std::pair(all[b].rank.value_or(kLast), std::string_view(all[b].file));
    });
    for (const size_t added : order_) {
      RankRow row;
      row.digest = std::move(digests.digests_[added]);
      row.added = added;
      row.name = row.digest.rank ? absl::StrCat("rank ", *row.digest.rank) : row.digest.file;
      result_.rows.push_back(std::move(row));
    }
  }

  RankComparison Compare() && {
    FindPeaks();
    FindUsual();
    for (size_t i = 0; i < result_.rows.size(); ++i) Judge(i);
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
  Spread SpreadBy(Value value) const {
    std::vector<uint64_t> values;
    for (const RankRow& row : result_.rows) values.push_back(value(row.digest));
    return SpreadOf(std::move(values));
  }
  template <typename Has>
  bool MostHave(Has has) const {
    const auto count = std::count_if(result_.rows.begin(), result_.rows.end(),
                                     [&](const RankRow& row) { return has(row.digest); });
    return 2 * static_cast<size_t>(count) > result_.rows.size();
  }

  void FindPeaks() {
    result_.peak_bytes = SpreadBy([](const RankDigest& digest) { return digest.peak_bytes; });
    const uint64_t median = result_.peak_bytes.median;
    const auto distance = [median](const RankDigest& digest) {
      return Distance(digest.peak_bytes, median);
    };
    // With fewer than four ranks, the usual distance would be that of one rank.
    const uint64_t usual = result_.rows.size() < 4 ? 0 : SpreadBy(distance).median;
    threshold_ = std::max(
        {kMinDifference, static_cast<uint64_t>(kMinShare * static_cast<double>(median)),
         static_cast<uint64_t>(kDeviations * kMadToDeviation * static_cast<double>(usual))});
  }

  // What is usual among the ranks is computed once for all of them.
  void FindUsual() {
    stacks_.FindMedians();
    libraries_.FindMedians();
    FindPromptPeaks();
    usual_steps_ = SpreadBy([](const RankDigest& d) { return d.steps; }).median;
    result_.reserved_bytes = SpreadBy([](const RankDigest& d) { return d.reserved_bytes; });
    result_.retries = SpreadBy([](const RankDigest& d) { return d.retries; });
    for (size_t i = 0; i < analysis::kCategories; ++i)
      result_.categories[i] = SpreadBy([i](const RankDigest& d) { return d.categories[i]; });
    result_.libraries = libraries_.Spreads();
    most_leak_ = MostHave([](const RankDigest& d) { return d.leak.has_value(); });
    most_fail_ = MostHave([](const RankDigest& d) { return d.failures > 0; });
    most_retry_ = MostHave([](const RankDigest& d) { return d.retries > 0; });
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      const RankDigest& digest = result_.rows[i].digest;
      if (digest.pid != 0) processes_.try_emplace({digest.host, digest.pid}, i);
    }
    FindUsualPeaks();
  }

  // Finds the peaks without buffers of collectives that were released late.
  void FindPromptPeaks() {
    const uint64_t usual = SpreadBy([](const RankDigest& d) { return d.collectives_bytes; }).median;
    const auto tolerance =
        std::max(kMinDifference, static_cast<uint64_t>(kMinShare * static_cast<double>(usual)));
    for (size_t i = 0; i < result_.rows.size(); ++i) {
      const RankDigest& digest = result_.rows[i].digest;
      const bool is_usual = Distance(digest.collectives_bytes, usual) <= tolerance;
      const uint64_t late = is_usual ? late_bytes_[order_[i]] : 0;
      prompt_peaks_.push_back(digest.peak_bytes - std::min(digest.peak_bytes, late));
    }
    usual_prompt_peak_ = analysis::LowerMedian(prompt_peaks_);
  }

  // Finds the median of the peaks of every group of steps, over the ranks that took these steps.
  void FindUsualPeaks() {
    for (const RankRow& row : result_.rows)
      result_.steps_per_group =
          std::max(result_.steps_per_group, row.digest.by_step.steps_per_group);
    std::vector<std::vector<uint64_t>> peaks;
    for (const RankRow& row : result_.rows) {
      const std::vector<uint64_t> groups =
          PeaksOfGroups(row.digest.by_step, result_.steps_per_group);
      peaks.resize(std::max(peaks.size(), groups.size()));
      for (size_t i = 0; i < groups.size(); ++i) peaks[i].push_back(groups[i]);
    }
    for (std::vector<uint64_t>& group : peaks)
      result_.median_step_peaks.push_back(analysis::LowerMedian(std::move(group)));
  }

  void Judge(size_t index) {
    RankRow& row = result_.rows[index];
    const RankDigest& digest = row.digest;
    row.delta_bytes = Minus(digest.peak_bytes, result_.peak_bytes.median);
    std::vector<RankCause> causes;
    const bool is_far = Distance(digest.peak_bytes, result_.peak_bytes.median) > threshold_ &&
                        Distance(prompt_peaks_[index], usual_prompt_peak_) > threshold_;
    if (is_far) {
      AddParts(index, row.delta_bytes > 0, causes);
      row.stacks = StacksThatDiffer(index);
    }
    AddContexts(digest, causes);
    if (digest.leak && !most_leak_)
      causes.push_back({std::numeric_limits<uint64_t>::max(), LeakText(*digest.leak)});
    if (digest.failures > 0 && !most_fail_) causes.push_back({0, "ran out of memory"});
    if (digest.retries > 0 && !most_retry_)
      causes.push_back(
          {0, absl::StrCat(Count(digest.retries), digest.retries == 1 ? " retry" : " retries",
                           " of its allocator")});
    std::stable_sort(causes.begin(), causes.end(),
                     [](const RankCause& a, const RankCause& b) { return a.bytes > b.bytes; });
    row.differs = is_far || !causes.empty();
    for (size_t i = 0; i < std::min(causes.size(), kCauses); ++i)
      row.causes.push_back(causes[i].text);
    if (!is_far) return;
    if (digest.steps != usual_steps_)
      row.causes.push_back(
          absl::StrCat("took ", Plural(digest.steps, "step"), ", the others ", usual_steps_));
    AddSteps(row);
  }

  // Finds the steps in which the rank differs, and names them unless these are all.
  void AddSteps(RankRow& row) const {
    const std::vector<uint64_t> groups = PeaksOfGroups(row.digest.by_step, result_.steps_per_group);
    std::optional<size_t> first, last;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (Distance(groups[i], result_.median_step_peaks[i]) <= threshold_) continue;
      if (!first) first = i;
      last = i;
    }
    if (!first) return;
    const uint64_t begin = *first * result_.steps_per_group + 1;
    const uint64_t end = std::min((*last + 1) * result_.steps_per_group, row.digest.steps);
    row.differing_steps = {begin, end};
    if (end < row.digest.steps) {
      row.causes.push_back(begin == end
                               ? absl::StrCat("differs only in step ", begin)
                               : absl::StrCat("differs only in steps ", begin, " to ", end));
    } else if (begin > 1) {
      row.causes.push_back(absl::StrCat("differs from step ", begin, " on"));
    }
  }

  static std::string LeakText(const RankDigest::Leak& leak) {
    return absl::StrCat(leak.is_likely ? "probably leaks " : "leaks ",
                        Bytes(static_cast<uint64_t>(std::max(0.0, leak.bytes_per_step))),
                        " per step", leak.place.empty() ? "" : absl::StrCat(" at ", leak.place));
  }

  // Categories, libraries and the line that account for the difference of a peak.
  void AddParts(size_t index, bool is_more, std::vector<RankCause>& causes) const {
    const RankDigest& digest = result_.rows[index].digest;
    const uint64_t least = threshold_ / 4;
    uint64_t of_model = 0;
    for (size_t i = 0; i < analysis::kCategories; ++i) {
      const auto category = static_cast<Category>(i);
      const uint64_t usual = result_.categories[i].median;
      const uint64_t distance = Distance(digest.categories[i], usual);
      const int64_t delta = Minus(digest.categories[i], usual);
      if ((delta > 0) != is_more || distance < least) continue;
      const bool is_of_model = category == Category::kParameters ||
                               category == Category::kGradients ||
                               category == Category::kOptimizerState;
      if (is_of_model) {
        of_model += distance;
      } else if (category == Category::kCommunication) {
        AddCollectives(index, delta, least, causes);
      } else if (category != Category::kOtherLibraries && category != Category::kUnknown) {
        causes.push_back({distance, absl::StrCat(TextOf(category), " ", SignedBytes(delta))});
      }
    }
    if (of_model > 0) {
      causes.push_back(
          {of_model, absl::StrCat("parameters, gradients and optimizer state ",
                                  SignedBytes(is_more ? static_cast<int64_t>(of_model)
                                                      : -static_cast<int64_t>(of_model)),
                                  ": its share of the model has a different size")});
    }
    for (const auto& [name, mine, usual] : libraries_.EntriesOf(order_[index])) {
      if (Distance(mine, usual) < least || (mine > usual) != is_more) continue;
      const char* meaning = *name == "NCCL" && is_more ? ": a further communicator" : "";
      causes.push_back({Distance(mine, usual),
                        absl::StrCat(*name, " ", SignedBytes(Minus(mine, usual)), meaning)});
    }
    AddStack(index, is_more, least, causes);
  }

  // Communicators are named by their library; the rest are buffers of collectives.
  void AddCollectives(size_t index, int64_t delta, uint64_t least,
                      std::vector<RankCause>& causes) const {
    const bool is_more = delta > 0;
    for (const auto& [name, mine, usual] : libraries_.EntriesOf(order_[index])) {
      if (*name == "NCCL") delta -= Minus(mine, usual);
    }
    const auto distance = static_cast<uint64_t>(std::abs(delta));
    if ((delta > 0) != is_more || distance < least) return;
    const char* meaning = is_more ? ": buffers of collectives, such as gathered parameters" : "";
    causes.push_back({distance, absl::StrCat(TextOf(Category::kCommunication), " ",
                                             SignedBytes(delta), meaning)});
  }

  // Names the line that differs most.
  void AddStack(size_t index, bool is_more, uint64_t least, std::vector<RankCause>& causes) const {
    uint64_t most = 0;
    std::optional<BytesByName::Entry> line;
    for (const BytesByName::Entry& entry : stacks_.EntriesOf(order_[index])) {
      const uint64_t distance = Distance(entry.bytes, entry.median);
      if ((entry.bytes > entry.median) != is_more || distance <= most) continue;
      most = distance;
      line = entry;
    }
    if (!line || most < least) return;
    causes.push_back(
        {most, absl::StrCat(SignedBytes(Minus(line->bytes, line->median)), " by ", *line->name)});
  }

  std::vector<StackDifference> StacksThatDiffer(size_t index) const {
    std::vector<BytesByName::Entry> entries = stacks_.EntriesOf(order_[index]);
    std::erase_if(entries, [](const auto& entry) { return entry.bytes == entry.median; });
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return Distance(a.bytes, a.median) > Distance(b.bytes, b.median);
    });
    entries.resize(std::min(entries.size(), RankRow::kMaxStacks));
    std::vector<StackDifference> stacks;
    for (const BytesByName::Entry& entry : entries)
      stacks.push_back({*entry.name, entry.bytes, entry.median});
    return stacks;
  }

  // A process that uses a GPU before it selects its own has a context on the first one.
  void AddContexts(const RankDigest& digest, std::vector<RankCause>& causes) const {
    std::vector<std::string> ranks;
    uint64_t bytes = 0;
    for (const RankDigest::Process& process : digest.others) {
      const auto found = processes_.find({digest.host, process.pid});
      if (found == processes_.end()) continue;
      const RankRow& other = result_.rows[found->second];
      if (other.digest.device == digest.device) continue;
      ranks.push_back(other.digest.rank ? absl::StrCat(*other.digest.rank) : other.name);
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
  std::vector<size_t> order_;  // by row of the result, that of the digest as it was added
  BytesByName stacks_, libraries_;
  std::vector<uint64_t> late_bytes_;    // by digest as it was added
  std::vector<uint64_t> prompt_peaks_;  // by row
  uint64_t usual_steps_ = 0, usual_prompt_peak_ = 0;
  bool most_leak_ = false, most_fail_ = false, most_retry_ = false;
  std::map<HostPid, size_t> processes_;  // their rows
  uint64_t threshold_ = 0;
};

void JobDigests::Add(RankDigest digest) {
  stacks_.AddRow(std::exchange(digest.stacks, {}));
  libraries_.AddRow(digest.libraries);
  late_bytes_.push_back(LateBytes(digest.by_step));
  if (keep_ == Keep::kPeaks) {
    digest.by_step.categories.clear();
    digest.by_step.stacks.clear();
  }
  digest.notes.clear();
  digests_.push_back(std::move(digest));
}

std::vector<uint64_t> PeaksOfGroups(const StepGroups& by_step, uint64_t steps_per_group) {
  const uint64_t joined = steps_per_group / by_step.steps_per_group;
  std::vector<uint64_t> peaks;
  for (size_t i = 0; i < by_step.peak_bytes.size(); ++i) {
    if (i % joined == 0) peaks.push_back(0);
    peaks.back() = std::max(peaks.back(), by_step.peak_bytes[i]);
  }
  return peaks;
}

RankComparison CompareRanks(JobDigests digests) {
  return RankComparer(std::move(digests)).Compare();
}

}  // namespace gmt::answers
