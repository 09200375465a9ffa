// analysis/leaks/site_verdict.h
//
// SiteVerdict: classifies the growth of one place of the program by what it did over the watched
// cycles.
//
//   cycle   0         burn-in            young            now
//           |-------------|--------------|----------------|
//                           late window    survivors of here may still be freed
//
// A survivor is a block that was born in the late window and is still held, older than twice the
// lifetime of nearly all freed blocks of the place. A leak keeps adding survivors, cycle after
// cycle. Survivors without a leak are recognised by four tests: births that become rarer (a cache
// that warms up), survivors from a single moment (state created once), frees of equal blocks from
// before the recording (a queue that was full when the recording began), and bytes that do not
// grow. docs/leaks.md has the numbers.
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
  kSurvivors,   // more and more blocks
  kRegrown,     // the same number of blocks, recreated larger each time
  kWarming,     // births become rarer
  kQueue,       // freed after a nearly constant time: a queue of bounded length
  kEvicted,     // freed after varying times: a cache that evicts
  kOnce,        // grew at one moment
  kEnded,       // grew for a while
  kFromBefore,  // replaces blocks from before the recording
  kMaxima,      // a buffer as large as the largest item so far
  kBursts,      // accumulates over some cycles and is then freed at once, again and again
};

struct SiteVerdict {
  Growth growth = Growth::kNone;
  bool is_leak() const { return growth == Growth::kSurvivors || growth == Growth::kRegrown; }
  bool certain = false;  // for a leak: every test is passed clearly
  Trend bytes_per_cycle;
  double onset = 0;               // cycle from which it grows or grew
  double end = 0;                 // cycle until which it grew; for a leak: now
  uint64_t bytes = 0, count = 0;  // for a leak: leaked; for bursts: the most; otherwise: held
  uint32_t lifetime = 0;          // in cycles, for a queue; between bursts
  double late_events = 0;         // survivors of the late window, as independent events
  std::vector<double> survivors;  // by chunk of their birth, after burn-in; for kSurvivors
};

// Number of cycles at the beginning that do not count.
uint32_t BurnInOf(uint32_t cycles);

// `freed_from_before`: by chunk, the number of freed blocks of such sizes whose birth was not seen.
SiteVerdict Judge(const SiteHistory& site, const ChunkGrid& grid,
                  const std::vector<double>& freed_from_before);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_SITE_VERDICT_H_
