// analysis/oom/verdict.h
//
// The decision: what the request failed for. docs/oom.md explains each rule.
//
//   1  more than the device could give an empty process               single_request
//   2  a limit refused, and what is free would not do                 cap
//   3  of the causes that, gone by themselves, would have let the
//      request fit, the one with most bytes: free memory in pieces,
//      in private pools, awaiting streams; a leak; other memory of
//      this process; other processes
//   4  none                                                           capacity
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

// What the request lacked: what it needed less what the driver had free.
uint64_t MissingBytes(const OomEvidence& evidence);

struct OomDecision {
  OomVerdict verdict = OomVerdict::kCapacity;
  Confidence confidence = Confidence::kLow;
  std::vector<OomCause> causes;  // that alone would have been enough; most bytes first
};
OomDecision Decide(const OomFacts& facts, const LeakAtFailure& leak);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_VERDICT_H_
