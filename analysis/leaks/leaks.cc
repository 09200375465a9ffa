#include "analysis/leaks/leaks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/leaks/benign.h"
#include "analysis/leaks/leak_cycles.h"
#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_kind.h"
#include "analysis/leaks/leak_outlook.h"
#include "analysis/leaks/leak_state.h"
#include "analysis/leaks/suspects.h"
#include "analysis/leaks/why_alive.h"

namespace gmt::analysis {
namespace {

class Conclusion {
 public:
  Conclusion(const LeakEvidence& evidence, StackTexts& texts)
      : evidence_(evidence), texts_(texts) {}

  LeakReport Draw() && {
    report_.cycles = evidence_.cycles;
    report_.cycles_needed = kCyclesForLikely;
    report_.enough = evidence_.cycles.count >= kCyclesForLikely;
    report_.watched_ns = evidence_.watched_ns;
    report_.minima = evidence_.minima;
    report_.before = evidence_.before;
    AddSuspects();
    if (!report_.enough) {
      Sort();
      report_.growing.swap(report_.suspects);
      return std::move(report_);
    }
    AddUntracked();
    Sort();
    Number();
    report_.benign = NameBenign(evidence_, texts_);
    return std::move(report_);
  }

 private:
  void AddSuspects() {
    std::vector<SiteGrowth> leaking;
    for (const SiteGrowth& site : evidence_.grown) {
      if (site.verdict.is_leak() && !IsOfGeneration(site, texts_)) leaking.push_back(site);
    }
    const std::vector<SiteGroup> groups = MergeLeaks(leaking, evidence_.loop, texts_);
    for (const SiteGroup& group : groups) {
      AddSuspect(group);
      const auto first = std::find_if(groups.begin(), groups.end(), [&](const SiteGroup& other) {
        return &other == &group || GrowInLockStep(other, group);
      });
      report_.suspects.back().lock_step = static_cast<size_t>(first - groups.begin()) + 1;
    }
  }

  void AddSuspect(const SiteGroup& group) {
    const SiteGrowth& first = *group.front();
    LeakSuspect& suspect = report_.suspects.emplace_back();
    suspect.device = first.key.device;
    suspect.heap = evidence_.heaps[std::min<size_t>(first.key.heap, evidence_.heaps.size() - 1)];
    suspect.kind = KindOf(group, texts_);
    suspect.reason = ReasonOf(group, suspect.kind, evidence_.cycles.count);
    suspect.since_cycle = Whole(first.verdict.onset) + 1;
    suspect.common_frame = CommonFrame(group, texts_);
    suspect.layer = CommonLayer(group, texts_);
    suspect.option = OptionFor(group, suspect.kind, texts_);
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
    SetEta(suspect);
  }
  // Returns "" for the program itself.
  std::string LibraryOf(const SiteGrowth& site) const {
    const std::string& library = texts_.Library(site.key.stack);
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
    if (!certain || !evidence_.cycles.clear) return LeakTier::kPossible;
    return evidence_.cycles.count >= kCyclesForLeak ? LeakTier::kLeak : LeakTier::kLikely;
  }
  void SetEta(LeakSuspect& suspect) const {
    const auto room = evidence_.rooms.find(suspect.device);
    if (suspect.device == kHostDevice || room == evidence_.rooms.end()) return;
    SetOutlook(room->second, report_.cycles.period_ns, suspect);
  }

  void AddUntracked() {
    for (const UntrackedGrowth& growth : evidence_.untracked) {
      LeakSuspect& suspect = report_.suspects.emplace_back();
      suspect.kind = LeakKind::kUntracked;
      suspect.device = growth.device;
      suspect.bytes_per_cycle = growth.bytes_per_cycle.slope;
      suspect.low_bytes_per_cycle = growth.bytes_per_cycle.low;
      suspect.high_bytes_per_cycle = growth.bytes_per_cycle.high;
      suspect.bytes = growth.bytes;
      suspect.since_cycle = growth.since_cycle + 1;
      suspect.reason = absl::StrCat(
          growth.source,
          growth.of_process ? " reports that this process" : " reports that the device",
          " uses more and more memory, but no allocation grows",
          growth.of_process ? "" : "; another process may be the cause");
      suspect.tier = TierOf(growth.of_process);
      SetEta(suspect);
    }
  }

  void Sort() {
    std::stable_sort(report_.suspects.begin(), report_.suspects.end(),
                     [](const LeakSuspect& a, const LeakSuspect& b) {
                       if (a.tier != b.tier) return a.tier > b.tier;
                       return a.bytes_per_cycle > b.bytes_per_cycle;
                     });
  }

  void Number() {
    size_t number = 0;
    for (LeakSuspect& suspect : report_.suspects) suspect.id = absl::StrCat("leak/", ++number);
    for (LeakSuspect& suspect : report_.suspects) {
      const auto first = std::find_if(
          report_.suspects.begin(), report_.suspects.end(),
          [&](const LeakSuspect& other) { return other.lock_step == suspect.lock_step; });
      if (suspect.lock_step != 0 && &*first != &suspect) suspect.lock_step_with = first->id;
    }
  }

  const LeakEvidence& evidence_;
  StackTexts& texts_;
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
    case LeakKind::kOptimizerGrows:
      return "optimizer_grows";
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

LeakReport ConcludeLeaks(const LeakEvidence& evidence, StackTexts& texts) {
  return Conclusion(evidence, texts).Draw();
}

namespace {

// The saved state covers more cycles than the kept events. `may_be_saved`: it is about the time
// that the options select.
LeakReport Find(const Examination& examination, const LeakOptions& options, bool may_be_saved) {
  const Trace& trace = examination.trace();
  LeakEvidence found = CollectEvidence(examination, options);
  std::optional<LeakEvidence> saved;
  if (trace.leak_state && may_be_saved) saved = EvidenceOf(*trace.leak_state);
  const bool use_saved = saved && saved->cycles.count > found.cycles.count;
  if (use_saved && options.device) saved->Select(*options.device);
  LeakReport report = ConcludeLeaks(use_saved ? *saved : found, examination.stacks());
  if (use_saved) report.details_from_ns = trace.first_t_ns;
  FindWhyAlive(examination, report.suspects);
  FindWhyAlive(examination, report.growing);
  if (report.before.empty()) return report;
  for (LeakSuspect& suspect : report.suspects) {
    std::vector<uint32_t> stacks;
    for (const LeakStack& stack : suspect.stacks) stacks.push_back(stack.stack);
    suspect.before = FindLikeBefore(trace, stacks);
  }
  return report;
}

bool BeginsACycleAfter(const Examination& examination, int64_t t_ns) {
  const std::vector<Cycle> cycles = CyclesForLeaks(examination, Window()).cycles;
  return std::any_of(cycles.begin(), cycles.end(),
                     [&](const Cycle& cycle) { return cycle.begin_t_ns > t_ns; });
}

}  // namespace

LeakReport FindLeaks(const Examination& examination, const LeakOptions& options) {
  const bool is_whole =
      options.window.from_ns == Window().from_ns && options.window.to_ns == Window().to_ns;
  return Find(examination, options, is_whole);
}

LeakReport FindLeaksUntilFailure(const Examination& examination, int64_t t_ns) {
  LeakOptions until;
  until.window.to_ns = t_ns;
  const bool may_be_saved = examination.trace().leak_state && !BeginsACycleAfter(examination, t_ns);
  return Find(examination, until, may_be_saved);
}

}  // namespace gmt::analysis
