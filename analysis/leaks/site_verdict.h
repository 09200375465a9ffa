// analysis/leaks/site_verdict.h
//
// SiteVerdict: what the growth of one place of the program is, from what it did over the cycles watched.
//
//   cycle   0         burn-in            young            now
//           |-------------|--------------|----------------|
//                           late window    survivors of here may still be freed
//
// A survivor is a block that was born in the late window and is still held, older than twice what
// nearly all freed blocks of the place had lived. A leak has survivors of ever more cycles. What has
// survivors and is none is told by four tests: births that become ever rarer (a cache that warms up),
// survivors of one moment (state made once), frees of equal blocks from before the recording (a queue
// that was full when the recording began), and bytes that do not grow. docs/leaks.md has the numbers.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_SITE_VERDICT_H_
#define GMT_ANALYSIS_LEAKS_SITE_VERDICT_H_

#include <cstdint>
#include <vector>

#include "analysis/leaks/site_history.h"
#include "analysis/leaks/trend.h"

namespace gmt::analysis {

enum class Growth : uint8_t {
  kNone,        // holds what it held at first, or nothing
  kSurvivors,   // ever more blocks
  kRegrown,     // as many blocks, made anew ever bigger
  kWarming,     // ever rarer
  kQueue,       // freed after about the same time: a queue of bounded length
  kEvicted,     // freed after times that differ: a cache that evicts
  kOnce,        // grew at one moment
  kEnded,       // grew for a while
  kFromBefore,  // replaces blocks from before the recording
  kMaxima,      // a buffer as big as the biggest thing so far
};

struct SiteVerdict {
  Growth growth = Growth::kNone;
  bool is_leak() const { return growth == Growth::kSurvivors || growth == Growth::kRegrown; }
  bool certain = false;  // of a leak: every test is passed clearly
  Trend bytes_per_cycle;
  double onset = 0;               // cycle from which on it grows, or grew
  double end = 0;                 // cycle up to which it grew; of a leak: now
  uint64_t bytes = 0, count = 0;  // of a leak: leaked; else: held
  uint32_t lifetime = 0;          // cycles, of a queue
  double late_events = 0;         // survivors of the late window, as independent events
  std::vector<double> survivors;  // by chunk of their birth, from burn-in on; of kSurvivors
};

// Cycles at the beginning that do not count.
uint32_t BurnInOf(uint32_t cycles);

// `freed_from_before`: by chunk, how many blocks of such sizes were freed whose birth nobody saw.
SiteVerdict Judge(const SiteHistory& site, const ChunkGrid& grid,
                  const std::vector<double>& freed_from_before);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_SITE_VERDICT_H_
