#include "analysis/leaks/site_verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gmt::analysis {
namespace {

constexpr uint32_t kMinBurnIn = 20;
constexpr double kBurnIn = 0.25;       // share of all cycles
constexpr uint32_t kMinAge = 5;        // in cycles, of a survivor
constexpr uint32_t kLongLifetime = 3;  // in cycles: blocks that live shorter are working memory
constexpr uint64_t kFewLongLifetimes = 3;
constexpr size_t kGroups = 10;  // of chunks, in the late window
constexpr double kGroupsWithSurvivors = 0.35;
constexpr double kMinEvents = 4;
constexpr double kWarming = -2, kWarmingOverall = -1.4, kWarmingLate = 0;
constexpr double kManyEvents = 12;
constexpr double kIrregularEvents = 6;  // required if they come irregularly
constexpr double kEvenGaps = 0.3;       // scatter of gaps that count as regular
constexpr double kUnlikely = 0.01;
constexpr double kBalanced = 0.6;
constexpr double kNetGrowth = 0.3;  // relative to the survivors' bytes
constexpr double kRisingGroups = 0.6, kFalls = 0.2, kMinGrowth = 0.03, kLaterHalf = 0.4;
constexpr double kMaximaPerCycle = 0.015;
constexpr uint32_t kMinMaxima = 6;
constexpr double kSameTime = 1.4;  // ratio of two lifetimes
constexpr double kAtOnce = 0.02;   // share of all cycles
constexpr uint64_t kMinBurstBytes = 1 << 20;

using Values = std::vector<double>;

Values Part(const Values& all, size_t begin, size_t end) {
  end = std::min(end, all.size());
  begin = std::min(begin, end);
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}
double Sum(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Folds chunks into `count` groups of about equal length, using `fold`.
template <typename Fold>
Values Grouped(const Values& chunks, size_t count, double start, Fold fold) {
  count = std::min(count, chunks.size());
  Values groups(count, start);
  for (size_t i = 0; i < chunks.size(); ++i) {
    double& group = groups[i * count / chunks.size()];
    group = fold(group, chunks[i]);
  }
  return groups;
}
Values GroupSums(const Values& chunks) { return Grouped(chunks, kGroups, 0.0, std::plus<>()); }
Values GroupMinima(const Values& chunks) {
  return Grouped(chunks, kGroups, INFINITY, [](double a, double b) { return std::min(a, b); });
}

class Judgement {
 public:
  Judgement(const SiteHistory& site, const ChunkGrid& grid, const Values& freed_from_before)
      : site_(site),
        from_before_(freed_from_before),
        series_(site.SeriesOn(grid)),
        per_chunk_(grid.cycles_per_chunk()),
        chunks_(grid.complete()),
        burn_in_((BurnInOf(grid.complete() * grid.cycles_per_chunk()) + per_chunk_ - 1) /
                 per_chunk_) {
    uint32_t age = kMinAge;
    if (site.lifetimes().CountFrom(kLongLifetime) >= kFewLongLifetimes)
      age = std::max(age, 2 * std::min(site.lifetimes().Quantile(0.95, kLongLifetime), 1u << 30));
    const size_t young = (age + per_chunk_ - 1) / per_chunk_;
    aged_ = chunks_ > young ? chunks_ - young : 0;
  }

  SiteVerdict Find() && {
    if (chunks_ == 0) return {};
    if (site_.live() > 0 && Grown() > 0) FindGrowth();
    if (!verdict_.is_leak() && site_.bursts().are_usual() && site_.most() >= kMinBurstBytes)
      FindBursts();
    return std::move(verdict_);
  }

 private:
  void FindGrowth() {
    verdict_.bytes = site_.live();
    verdict_.count = site_.live_count();
    if (aged_ > burn_in_ && HasSurvivors()) {
      FindSurvivors();
    } else if (IsRegrown()) {
      FindRegrown();
    } else {
      NameGrowth();
    }
  }

  double Grown() const { return series_.least.back() - series_.least.front(); }
  double GrownSince(size_t chunk) const { return series_.least.back() - series_.least[chunk]; }

  // ---- More and more blocks

  bool HasSurvivors() const {
    const Values late = Part(series_.alive, burn_in_, aged_);
    const double bytes = Sum(Part(series_.alive_bytes, burn_in_, aged_));
    return IndependentEvents(late) >= kMinEvents - 1e-9 &&
           GrownSince(burn_in_) > kNetGrowth * bytes;
  }

  void FindSurvivors() {
    const Values late = Part(series_.alive, burn_in_, aged_);
    const size_t first = FirstIn(late) + burn_in_, last = LastIn(late) + burn_in_;
    const double events = IndependentEvents(late);
    const Values groups = GroupSums(late);
    const auto with_survivors = static_cast<double>(
        std::count_if(groups.begin(), groups.end(), [](double n) { return n > 0; }));
    verdict_.late_events = events;
    if (Sum(Part(from_before_, burn_in_, chunks_)) >= kBalanced * Sum(late))
      return Name(Growth::kFromBefore);
    const double silent =
        static_cast<double>(aged_ - 1 - last) / static_cast<double>(aged_ - first);
    if (ChanceOfSilence(events, silent) < kUnlikely) return NameGrowth();
    const double trend = RateTrend(Part(series_.alive, first, aged_));
    if (IsWarming(trend, events)) return Name(Growth::kWarming);
    verdict_.growth = Growth::kSurvivors;
    verdict_.certain =
        with_survivors >= kGroupsWithSurvivors * static_cast<double>(groups.size()) &&
        (events >= kIrregularEvents - 1e-9 || AreEven(late));
    verdict_.survivors = Part(series_.alive, burn_in_, aged_);
    Measure(first);
  }

  bool IsWarming(double late_trend, double late_events) const {
    if (late_trend < kWarming) return true;
    const size_t begun = (kMinAge + per_chunk_ - 1) / per_chunk_;
    const double trend = RateTrend(Part(series_.alive, begun, aged_));
    return trend < kWarmingOverall && (late_trend < kWarmingLate || late_events < kManyEvents);
  }

  // Measures the bytes that survive per cycle: from the first cycle on, if the late window
  // continues the rate of the beginning of the run; up to now, if the place frees nothing.
  void Measure(size_t first_late) {
    const bool frees = site_.live_count() < site_.births();
    const size_t end = frees ? aged_ : chunks_;
    const size_t begin = BeginOfGrowth(first_late, end);
    verdict_.bytes_per_cycle = PerCycle(MeanOf(Part(series_.alive_bytes, begin, end)));
    verdict_.onset = static_cast<double>(begin) * per_chunk_;
    verdict_.end = static_cast<double>(chunks_) * per_chunk_;
    const Values leaked = Part(series_.alive_bytes, begin, chunks_);
    verdict_.bytes = std::min(Whole(Sum(leaked)), site_.live());
    verdict_.count = Whole(Sum(Part(series_.alive, begin, chunks_)));
  }
  size_t BeginOfGrowth(size_t first_late, size_t end) const {
    const Values all = Part(series_.alive, 0, end);
    const size_t first = FirstIn(all);
    if (first >= burn_in_) {
      const double silent = static_cast<double>(first) / static_cast<double>(end);
      return ChanceOfSilence(IndependentEvents(all), silent) < kUnlikely ? first_late : 0;
    }
    const double late_rate = Sum(Part(all, burn_in_, end)) / static_cast<double>(end - burn_in_);
    const double early = Sum(Part(all, 0, burn_in_));
    const double expected = late_rate * static_cast<double>(burn_in_);
    const double usual = 3 * std::sqrt(expected + 1) + 0.02 * expected;
    return std::abs(early - expected) <= usual ? 0 : burn_in_;
  }
  Trend PerCycle(Trend trend) const {
    const double cycles = per_chunk_;
    return {trend.slope / cycles, std::max(0.0, trend.low / cycles), trend.high / cycles};
  }

  // ---- The same number of blocks, growing in size

  bool IsRegrown() const {
    const double cycles = static_cast<double>(chunks_) * per_chunk_;
    if (site_.new_maxima() < std::max<double>(kMinMaxima, kMaximaPerCycle * cycles)) return false;
    if (2 * site_.live_count() > site_.births()) return false;
    const Values least = GroupMinima(Part(series_.least, burn_in_, chunks_));
    const Rises rises = RisesOf(least);
    if (rises.up <= 0 || rises.down > kFalls * rises.up) return false;
    if (rises.rising < kRisingGroups * rises.pairs) return false;
    if (least.back() - least.front() < kMinGrowth * static_cast<double>(site_.most())) return false;
    const size_t middle = least.size() / 2;
    return least.back() - least[middle] >= kLaterHalf * (least[middle] - least.front()) &&
           TheilSen(least).low > 0;
  }

  void FindRegrown() {
    verdict_.growth = Growth::kRegrown;
    verdict_.certain = true;
    verdict_.bytes_per_cycle = PerCycle(TheilSen(Part(series_.least, burn_in_, chunks_)));
    const double cycles = static_cast<double>(chunks_) * per_chunk_;
    verdict_.onset =
        std::max(0.0, cycles - Grown() / std::max(verdict_.bytes_per_cycle.slope, 1e-9));
    verdict_.end = cycles;
    verdict_.bytes = Whole(Grown());
  }

  // ---- Growth that is not a leak

  void FindBursts() {
    verdict_ = {};
    verdict_.growth = Growth::kBursts;
    verdict_.bytes = site_.most();
    verdict_.lifetime = site_.bursts().CyclesBetween();
    verdict_.end = static_cast<double>(chunks_) * per_chunk_;
  }

  void Name(Growth growth) {
    verdict_.growth = growth;
    const double least = series_.least.front(), grown = Grown();
    size_t onset = 0, end = 0;
    while (onset < chunks_ && series_.least[onset] - least < 0.05 * grown) ++onset;
    while (end < chunks_ && series_.least[end] - least < 0.95 * grown) ++end;
    verdict_.onset = static_cast<double>(onset) * per_chunk_;
    verdict_.end = static_cast<double>(end) * per_chunk_;
  }

  void NameGrowth() {
    const Lifetimes& lifetimes = site_.lifetimes();
    if (lifetimes.CountFrom(kLongLifetime) >= kFewLongLifetimes) {
      const double low = lifetimes.Quantile(0.1, kLongLifetime);
      const double high = lifetimes.Quantile(0.9, kLongLifetime);
      verdict_.lifetime = lifetimes.Quantile(0.5, kLongLifetime);
      return Name(high <= kSameTime * low ? Growth::kQueue : Growth::kEvicted);
    }
    if (site_.new_maxima() > 2 && site_.live_count() * 4 < site_.births())
      return Name(Growth::kMaxima);
    Name(Growth::kEnded);
    verdict_.onset = site_.first_birth();
    const double cycles = static_cast<double>(chunks_) * per_chunk_;
    if (verdict_.end - verdict_.onset <= std::max(2.0 * per_chunk_, kAtOnce * cycles))
      verdict_.growth = Growth::kOnce;
  }

  // Whether events come at about equal intervals, like evaluations.
  static bool AreEven(const Values& events) {
    Values gaps;
    double gap = 0;
    for (const double count : Part(events, FirstIn(events) + 1, events.size())) {
      ++gap;
      if (count <= 0) continue;
      gaps.push_back(gap);
      gap = 0;
    }
    const double mean = Sum(gaps) / std::max(1.0, static_cast<double>(gaps.size()));
    double squares = 0;
    for (const double value : gaps) squares += (value - mean) * (value - mean);
    return !gaps.empty() &&
           std::sqrt(squares / static_cast<double>(gaps.size())) <= kEvenGaps * mean;
  }
  static size_t FirstIn(const Values& counts) {
    const auto found = std::find_if(counts.begin(), counts.end(), [](double n) { return n > 0; });
    return static_cast<size_t>(found - counts.begin());
  }
  static size_t LastIn(const Values& counts) {
    size_t last = counts.size();
    while (last > 0 && counts[last - 1] <= 0) --last;
    return last > 0 ? last - 1 : 0;
  }

  const SiteHistory& site_;
  const Values& from_before_;
  const SiteHistory::Series series_;
  const uint32_t per_chunk_;
  const size_t chunks_, burn_in_;
  size_t aged_ = 0;  // chunks whose survivors are old enough
  SiteVerdict verdict_;
};

}  // namespace

uint32_t BurnInOf(uint32_t cycles) {
  return std::max(kMinBurnIn, static_cast<uint32_t>(kBurnIn * cycles));
}

SiteVerdict Judge(const SiteHistory& site, const ChunkGrid& grid,
                  const std::vector<double>& freed_from_before) {
  return Judgement(site, grid, freed_from_before).Find();
}

}  // namespace gmt::analysis
