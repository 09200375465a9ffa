// analysis/oom/verdict.h
//
// Decides why the request failed. docs/oom.md explains each rule.
//
//   1  more than the device could give an empty process            single_request
//   2  refused by a limit, and free memory would not suffice       cap
//   3  the step's expected peak fits what is available: the free   fragmentation, private_pool,
//      memory is in the wrong place, if it would suffice           stream_deferred
//   4  it does not fit, but would without a leak, other memory     leak, outside,
//      of this process, or other processes                         other_process
//   5  none of these                                               capacity
//
// If there are several causes, the one with most bytes is chosen.
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

// What a suspect held on the device of the failure at that moment.
struct LeakAtFailure {
  const LeakSuspect* suspect = nullptr;
  uint64_t bytes = 0;
};
// The suspect with most bytes above tier `possible`; null if there is none.
LeakAtFailure LargestLeak(const Trace& trace, const LeakReport& leaks,
                          const FailedAllocation& failed);

// Does not overflow for up to 100 percent.
uint64_t PercentOf(uint64_t bytes, uint64_t percent);

// What the request lacked: what it needed minus the driver's free memory.
uint64_t MissingBytes(const OomEvidence& evidence);

// What the failing step lacks if its blocks can have `available` bytes: its expected peak minus
// that. UINT64_MAX for a tensor that grows without bound.
uint64_t ShortBytes(const OomEvidence& evidence, uint64_t available);

struct OomDecision {
  OomVerdict verdict = OomVerdict::kCapacity;
  Confidence confidence = Confidence::kLow;
  std::vector<OomCause> causes;  // each sufficient alone; most bytes first
};
OomDecision Decide(const OomFacts& facts, const LeakAtFailure& leak);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_VERDICT_H_
