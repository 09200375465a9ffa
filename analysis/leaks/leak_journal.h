// analysis/leaks/leak_journal.h
//
// The journal that LeakWatcher keeps for a while: memory operations in order. They are counted
// again whenever a better source of cycles is found, and searched for cycles if no source marks
// them.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_
#define GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/held_pieces.h"
#include "analysis/leaks/leak_detector.h"
#include "analysis/leaks/marked_cycles.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

enum class Happened : uint8_t {
  kBirth,
  kFree,
  kAwaits,
  kFreeOfAwaiting,
  kSegment,  // the born memory is a segment
  kSegmentFree,
  kHeldBefore,
  kSegmentBefore,  // memory held before is a segment
  kFreeOfBefore,
  kFreeOfUnknown,
  kFired,  // a marker
  kSampled,
};

struct JournalEntry {
  Happened what = Happened::kBirth;
  bool is_step = false, on_device = false;
  uint16_t heap = 0;
  int32_t device = 0;
  uint32_t site = 0;  // the detector's site; of kFired: the marker; of kSampled: the source
  PieceId piece = kNoPiece;
  uint64_t size = 0;
  int64_t t_ns = 0;
};
static_assert(sizeof(JournalEntry) == 40);

// Determines where a cycle ends.
struct CycleRule {
  CycleSource kind = CycleSource::kNothing;
  uint32_t marker = MarkedCycles::kNoMarker;
  std::string source;
  uint32_t stack = 0;  // of an anchor
  uint64_t burst_gap = 0;
  uint64_t length = 0;     // of equal parts
  std::vector<Step> ends;  // of low-water marks and equal parts: steps in the journal
  bool IsOf(const CycleRule& other) const {
    return kind == other.kind && marker == other.marker && stack == other.stack;
  }
};

// Builds the columns needed for finding cycles. `memory` and `detector`: those of the entries.
Trace TraceOfJournal(const std::vector<JournalEntry>& journal, const HeldPieces& memory,
                     const LeakDetector& detector);

// Infers cycles for a journal without marks: from a loop if there is one, otherwise from low-water
// marks, otherwise by dividing it into equal parts.
std::optional<CycleRule> InferRule(const Trace& trace, const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_JOURNAL_H_
