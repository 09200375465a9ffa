// analysis/leaks/leak_evidence.h
//
// LeakEvidence: what a search for leaks found out, before anybody gives it names: the growth of each
// site, the cycles that were compared, what was held at the least. Numbers and ids of stacks, no
// blocks and no events: it is made from a recording (CollectEvidence), beside a running program
// (leak_watcher.h), and from what such a search saved (leak_state.h), and the same conclusions are
// drawn from all three.
//
//   events --CollectEvidence--+
//   events one by one --LeakWatcher--+-> LeakEvidence --ConcludeLeaks--> LeakReport
//   gmt.LeakState --EvidenceOf-------+
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_EVIDENCE_H_
#define GMT_ANALYSIS_LEAKS_LEAK_EVIDENCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/leak_detector.h"
#include "analysis/leaks/leaks.h"
#include "analysis/leaks/untracked.h"
#include "analysis/stacks/stack_texts.h"

namespace gmt::analysis {

struct PoolGrowth {
  int32_t device = 0;
  uint64_t bytes = 0;
};

struct LeakEvidence {
  WatchedCycles cycles;
  int64_t watched_ns = 0;  // from the first cycle's beginning to the last one's end
  std::vector<std::string> heaps = {"driver", "host"};  // by SiteKey::heap
  std::vector<SiteGrowth> grown;
  std::vector<SiteKey> loop;  // sites that allocate in most cycles
  std::vector<CycleMinima> minima;
  std::vector<UntrackedGrowth> untracked;
  std::vector<PoolGrowth> pools;      // allocators' pools that grew while what they hold did not
  std::map<int32_t, uint64_t> rooms;  // by device: bytes until it is full
  std::vector<HeldBefore> before;

  // Only what is on one device.
  void Select(int32_t device);
};

// Stacks of the loop that are looked at, at most.
inline constexpr size_t kMostLoopStacks = 2000;

std::vector<CycleMinima> MinimaOf(const LeakDetector& detector);
// `segments`: what frameworks' allocators took, by device.
std::vector<PoolGrowth> PoolsThatGrew(const LeakDetector& detector,
                                      const std::map<int32_t, SiteHistory>& segments);

LeakEvidence CollectEvidence(const Examination& examination, const LeakOptions& options);
LeakReport ConcludeLeaks(const LeakEvidence& evidence, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_EVIDENCE_H_
