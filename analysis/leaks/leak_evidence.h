// analysis/leaks/leak_evidence.h
//
// LeakEvidence: the results of a leak search before they are interpreted: the growth of each site,
// the compared cycles, the minima. It contains numbers and stack ids, no blocks or events. It comes
// from a recording (CollectEvidence), from a running program (leak_watcher.h), or from a search's
// saved state (leak_state.h); all three are interpreted by the same code.
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

#include "analysis/examination/examination.h"
#include "analysis/leaks/leak_detector.h"
#include "analysis/leaks/leak_report.h"
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
  std::vector<PoolGrowth> pools;      // allocators' pools that grew while their blocks did not
  std::map<int32_t, uint64_t> rooms;  // by device: bytes until it is full
  std::vector<HeldBefore> before;

  // Keeps only what is on one device.
  void Select(int32_t device);
};

// Maximum number of stacks of the loop that are examined.
inline constexpr size_t kMaxLoopStacks = 2000;

std::vector<CycleMinima> MinimaOf(const LeakDetector& detector);
// `segments`: driver memory taken by frameworks' allocators, by device.
std::vector<PoolGrowth> PoolsThatGrew(const LeakDetector& detector,
                                      const std::map<int32_t, SiteHistory>& segments);

LeakEvidence CollectEvidence(const Examination& examination, const LeakOptions& options);
LeakReport ConcludeLeaks(const LeakEvidence& evidence, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_EVIDENCE_H_
