#include "analysis/leaks/leaks.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/leaks/benign.h"
#include "analysis/leaks/leak_cycles.h"
#include "analysis/leaks/leak_kind.h"
#include "analysis/leaks/leak_outlook.h"
#include "analysis/leaks/leak_walk.h"
#include "analysis/leaks/suspects.h"
#include "analysis/leaks/untracked.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMostLoopStacks = 2000;

class Finder {
 public:
  Finder(const Examination& examination, const LeakOptions& options)
      : examination_(examination),
        trace_(examination.trace()),
        options_(options),
        cycles_(CyclesForLeaks(examination, options.window)) {}

  LeakReport Find() && {
    DescribeCycles();
    if (cycles_.cycles.empty()) return std::move(report_);
    const LeakWalk walk = WatchCycles(trace_, cycles_.cycles, options_.device);
    DescribeMinima(walk);
    if (!report_.enough) return std::move(report_);
    const std::vector<SiteGrowth> grown = walk.detector.Evaluate();
    AddSuspects(grown, walk);
    AddUntracked(walk);
    Rank();
    report_.benign = NameBenign(grown, walk, examination_.stacks());
    return std::move(report_);
  }

 private:
  void DescribeCycles() {
    const std::vector<Cycle>& cycles = cycles_.cycles;
    report_.cycles.count = cycles.size();
    report_.cycles.source = cycles_.source;
    report_.cycles.inferred = cycles_.inferred;
    report_.cycles.clear = cycles_.clear;
    report_.cycles_needed = kCyclesForLikely;
    report_.enough = cycles.size() >= kCyclesForLikely;
    std::vector<int64_t> periods;
    for (const Cycle& cycle : cycles)
      periods.push_back(Saturated(cycle.begin_t_ns, cycle.end_t_ns));
    if (periods.empty()) return;
    const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
    std::nth_element(periods.begin(), middle, periods.end());
    report_.cycles.period_ns = *middle;
    report_.watched_ns = Saturated(cycles.front().begin_t_ns, cycles.back().end_t_ns);
  }
  // Times of a damaged or hostile recording are any numbers.
  static int64_t Saturated(int64_t from, int64_t to) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(to, from, &difference)) return std::numeric_limits<int64_t>::max();
    return std::max<int64_t>(difference, 0);
  }

  void DescribeMinima(const LeakWalk& walk) {
    const ChunkGrid& grid = walk.detector.grid();
    for (const DeviceMinima& minima : walk.detector.Minima()) {
      const size_t burn_in =
          std::min<size_t>(BurnInOf(grid.cycle()) / grid.cycles_per_chunk(), minima.least.size());
      if (minima.least.empty()) continue;
      CycleMinima& of = report_.minima.emplace_back();
      of.device = minima.device;
      of.first_bytes = Whole(minima.least[std::min(burn_in, minima.least.size() - 1)]);
      of.first_cycle = burn_in * grid.cycles_per_chunk() + 1;
      of.last_bytes = Whole(minima.least.back());
      of.bytes_per_cycle = minima.bytes_per_cycle.slope;
      of.low_bytes_per_cycle = minima.bytes_per_cycle.low;
      of.high_bytes_per_cycle = minima.bytes_per_cycle.high;
    }
  }

  // Stacks that allocate in most cycles: what they share is the loop.
  std::vector<SiteKey> LoopStacks(const LeakWalk& walk) const {
    std::vector<SiteKey> keys = walk.detector.SitesWith(cycles_.cycles.size() / 2);
    if (keys.size() > kMostLoopStacks) keys.resize(kMostLoopStacks);
    return keys;
  }

  void AddSuspects(const std::vector<SiteGrowth>& grown, const LeakWalk& walk) {
    std::vector<SiteGrowth> leaking;
    for (const SiteGrowth& site : grown) {
      if (site.verdict.is_leak()) leaking.push_back(site);
    }
    const std::vector<SiteGroup> groups =
        MergeLeaks(leaking, LoopStacks(walk), examination_.stacks());
    for (const SiteGroup& group : groups) {
      AddSuspect(group, walk);
      const auto first = std::find_if(groups.begin(), groups.end(), [&](const SiteGroup& other) {
        return &other == &group || GrowInLockStep(other, group);
      });
      report_.suspects.back().lock_step = static_cast<size_t>(first - groups.begin()) + 1;
    }
  }

  void AddSuspect(const SiteGroup& group, const LeakWalk& walk) {
    const SiteGrowth& first = *group.front();
    LeakSuspect& suspect = report_.suspects.emplace_back();
    suspect.device = first.key.device;
    suspect.heap = trace_.heaps[std::min<size_t>(first.key.heap, trace_.heaps.size() - 1)];
    suspect.kind = KindOf(group, examination_.stacks());
    suspect.reason = ReasonOf(group, suspect.kind, cycles_.cycles.size());
    suspect.since_cycle = Whole(first.verdict.onset) + 1;
    suspect.common_frame = CommonFrame(group, examination_.stacks());
    if (first.key.heap == kDriverHeap) suspect.library = LibraryOf(first);
    bool certain = false;
    for (const SiteGrowth* site : group) {
      const SiteVerdict& verdict = site->verdict;
      certain |= verdict.certain;
      suspect.bytes_per_cycle += verdict.bytes_per_cycle.slope;
      suspect.low_bytes_per_cycle += verdict.bytes_per_cycle.low;
      suspect.high_bytes_per_cycle += verdict.bytes_per_cycle.high;
      suspect.bytes += verdict.bytes;
      suspect.count += verdict.count;
      AddStack(*site, suspect);
    }
    std::stable_sort(suspect.stacks.begin(), suspect.stacks.end(),
                     [](const LeakStack& a, const LeakStack& b) { return a.bytes > b.bytes; });
    suspect.tier = TierOf(certain);
    SetEta(MostHeld(walk, suspect.device), suspect);
  }
  // "" where it is the program itself.
  std::string LibraryOf(const SiteGrowth& site) const {
    const std::string& library = examination_.stacks().Library(site.key.stack);
    return library == "the program" ? "" : library;
  }
  static void AddStack(const SiteGrowth& site, LeakSuspect& suspect) {
    if (site.key.stack == 0 || site.key.stack == LeakDetector::kOtherStacks) return;
    LeakStack& stack = suspect.stacks.emplace_back();
    stack.id = absl::StrCat("stack/", site.key.stack);
    if (site.key.forward_stack != 0) absl::StrAppend(&stack.id, "+", site.key.forward_stack);
    stack.stack = site.key.stack;
    stack.forward_stack = site.key.forward_stack;
    stack.bytes = site.verdict.bytes;
    stack.count = site.verdict.count;
    stack.bytes_per_cycle = site.verdict.bytes_per_cycle.slope;
  }

  LeakTier TierOf(bool certain) const {
    if (!certain || !cycles_.clear) return LeakTier::kPossible;
    return cycles_.cycles.size() >= kCyclesForLeak ? LeakTier::kLeak : LeakTier::kLikely;
  }
  static uint64_t MostHeld(const LeakWalk& walk, int32_t device) {
    const auto most = walk.recent_peaks.find(device);
    return most != walk.recent_peaks.end() ? most->second : 0;
  }
  void SetEta(uint64_t most_held, LeakSuspect& suspect) const {
    if (suspect.device == kHostDevice) return;
    const auto room = RoomOn(trace_, suspect.device, most_held);
    if (room) SetOutlook(*room, report_.cycles.period_ns, suspect);
  }

  void AddUntracked(const LeakWalk& walk) {
    for (const UntrackedGrowth& growth : FindUntracked(trace_, cycles_.cycles)) {
      if (options_.device && growth.device != *options_.device) continue;
      LeakSuspect& suspect = report_.suspects.emplace_back();
      suspect.kind = LeakKind::kUntracked;
      suspect.device = growth.device;
      suspect.bytes_per_cycle = growth.bytes_per_cycle.slope;
      suspect.low_bytes_per_cycle = growth.bytes_per_cycle.low;
      suspect.high_bytes_per_cycle = growth.bytes_per_cycle.high;
      suspect.bytes = growth.bytes;
      suspect.since_cycle = growth.since_cycle + 1;
      suspect.reason = absl::StrCat(
          growth.source, growth.of_process ? " says that this process" : " says that the device",
          " uses ever more, and no allocation does",
          growth.of_process ? "" : "; it may be another process");
      suspect.tier = TierOf(growth.of_process);
      SetEta(MostHeld(walk, suspect.device), suspect);
    }
  }

  void Rank() {
    std::stable_sort(report_.suspects.begin(), report_.suspects.end(),
                     [](const LeakSuspect& a, const LeakSuspect& b) {
                       if (a.tier != b.tier) return a.tier > b.tier;
                       return a.bytes_per_cycle > b.bytes_per_cycle;
                     });
    size_t number = 0;
    for (LeakSuspect& suspect : report_.suspects) suspect.id = absl::StrCat("leak/", ++number);
    for (LeakSuspect& suspect : report_.suspects) {
      const auto first = std::find_if(
          report_.suspects.begin(), report_.suspects.end(),
          [&](const LeakSuspect& other) { return other.lock_step == suspect.lock_step; });
      if (suspect.lock_step != 0 && &*first != &suspect) suspect.lock_step_with = first->id;
    }
  }

  const Examination& examination_;
  const Trace& trace_;
  const LeakOptions& options_;
  const LeakCycles cycles_;
  LeakReport report_;
};

}  // namespace

std::string_view NameOf(LeakTier tier) {
  switch (tier) {
    case LeakTier::kPossible:
      return "possible";
    case LeakTier::kLikely:
      return "likely";
    case LeakTier::kLeak:
      return "leak";
  }
  return "possible";
}

std::string_view NameOf(LeakKind kind) {
  switch (kind) {
    case LeakKind::kGraphKept:
      return "graph_kept";
    case LeakKind::kTensorKept:
      return "tensor_kept";
    case LeakKind::kCatGrowth:
      return "cat_growth";
    case LeakKind::kDriver:
      return "driver";
    case LeakKind::kPinnedHost:
      return "pinned_host";
    case LeakKind::kPoolRatchet:
      return "pool_ratchet";
    case LeakKind::kAwaiting:
      return "awaiting_stream";
    case LeakKind::kUntracked:
      return "untracked";
  }
  return "untracked";
}

LeakReport FindLeaks(const Examination& examination, const LeakOptions& options) {
  return Finder(examination, options).Find();
}

}  // namespace gmt::analysis
