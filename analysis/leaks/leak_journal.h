// analysis/leaks/leak_journal.h
//
// What LeakWatcher keeps of the events for a while: what happened to memory, in order, to be counted anew
// each time that something better tells cycles, and to look for cycles in where nothing tells them.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_
#define GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/held_memory.h"
#include "analysis/leaks/leak_detector.h"
#include "analysis/leaks/told_cycles.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

enum class Happened : uint8_t {
  kBirth,
  kFree,
  kAwaits,
  kFreeOfAwaiting,
  kSegment,  // what was born is one
  kSegmentFree,
  kHeldBefore,
  kSegmentBefore,  // what was held before is one
  kFreeOfBefore,
  kFreeOfUnknown,
  kFired,  // a teller
  kSampled,
};

struct JournalEntry {
  Happened what = Happened::kBirth;
  bool is_step = false, on_device = false;
  uint16_t heap = 0;
  int32_t device = 0;
  uint32_t site = 0;  // of the detector; of kFired: the teller; of kSampled: the source
  PieceId piece = kNoPiece;
  uint64_t size = 0;
  int64_t t_ns = 0;
};
static_assert(sizeof(JournalEntry) == 40);

// By what a cycle ends.
struct CycleRule {
  Telling telling = Telling::kNothing;
  uint32_t teller = ToldCycles::kNobody;
  std::string source;
  uint32_t stack = 0;  // of an anchor
  uint64_t burst_gap = 0;
  uint64_t length = 0;     // of equal parts
  std::vector<Step> ends;  // of low-water marks and equal parts: in the journal
  bool IsOf(const CycleRule& other) const {
    return telling == other.telling && teller == other.teller && stack == other.stack;
  }
};

// The columns that cycles are found by. `memory` and `detector`: of the entries' pieces and sites.
Trace TraceOfJournal(const std::vector<JournalEntry>& journal, const HeldMemory& memory,
                     const LeakDetector& detector);

// Cycles that nothing tells: those of a loop, else low-water marks, else equal parts.
std::optional<CycleRule> InferRule(const Trace& trace, const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_
