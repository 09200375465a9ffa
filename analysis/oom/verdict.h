// analysis/oom/verdict.h
//
// The decision: what the request failed for. docs/oom.md explains each rule.
//
//   1  more than the device could give an empty process               single_request
//   2  a limit refused, and what is free would not do                 cap
//   3  the peak that the step was to reach fits what is available:    fragmentation, private_pool,
//      what is free in the wrong place, if it would do                 stream_deferred
//   4  it does not, but would without a leak, other memory of this    leak, outside,
//      process, other processes                                       other_process
//   5  none                                                           capacity
//
// Of several causes the one with most bytes.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_VERDICT_H_
#define GMT_ANALYSIS_OOM_VERDICT_H_

#include <cstdint>
#include <vector>

#include "analysis/confidence.h"
#include "analysis/leaks/leaks.h"
#include "analysis/oom/evidence.h"
#include "analysis/oom/oom.h"

namespace gmt::analysis {

// What a suspect held on the device of the failure, at that moment.
struct LeakAtFailure {
  const LeakSuspect* suspect = nullptr;
  uint64_t bytes = 0;
};
// The one with most bytes of those that are no mere possibility; null where there is none.
LeakAtFailure LargestLeak(const Trace& trace, const LeakReport& leaks,
                          const FailedAllocation& failed);

// Does not overflow up to 100 percent.
uint64_t PercentOf(uint64_t bytes, uint64_t percent);

// What the request lacked: what it needed less what the driver had free.
uint64_t MissingBytes(const OomEvidence& evidence);

// What the failing step lacks if its blocks can have `available` bytes: its expected peak less
// that. UINT64_MAX for a tensor that grows without an end.
uint64_t ShortBytes(const OomEvidence& evidence, uint64_t available);

struct OomDecision {
  OomVerdict verdict = OomVerdict::kCapacity;
  Confidence confidence = Confidence::kLow;
  std::vector<OomCause> causes;  // that alone would have been enough; most bytes first
};
OomDecision Decide(const OomFacts& facts, const LeakAtFailure& leak);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_VERDICT_H_
