#include "analysis/leaks/leak_journal.h"

#include <algorithm>
#include <utility>

#include "analysis/leaks/leak_cycles.h"
#include "analysis/loop/call_runs.h"
#include "analysis/loop/cycle_anchor.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kStretches = 20;

}  // namespace

Trace TraceOfJournal(const std::vector<JournalEntry>& journal, const HeldPieces& memory,
                     const LeakDetector& detector) {
  Trace trace;
  trace.heaps = memory.heaps();
  Rows& rows = trace.rows;
  std::vector<RowId> row_of(memory.most_pieces(), kNoRow);
  const auto add = [&](const JournalEntry& entry, Step birth, uint32_t stack) {
    const RowId row = rows.count();
    rows.size.push_back(entry.size);
    rows.birth.push_back(birth);
    rows.death.push_back(kNever);
    rows.stack.push_back(stack);
    rows.heap.push_back(entry.heap);
    rows.device.push_back(entry.device);
    rows.memory.push_back(static_cast<uint8_t>(MEMORY_UNSPECIFIED));
    rows.flags.push_back(birth == 0 ? kRowFromBefore : 0);
    if (entry.piece < row_of.size()) row_of[entry.piece] = row;
    return row;
  };
  for (const JournalEntry& entry : journal) {
    const bool is_held = entry.piece < row_of.size();
    switch (entry.what) {
      case Happened::kBirth:
        trace.steps.push_back({rows.count(), false, entry.t_ns});
        add(entry, trace.last_step(), detector.KeyOf(entry.site).stack);
        break;
      case Happened::kHeldBefore:
        add(entry, 0, 0);
        break;
      case Happened::kSegment:
      case Happened::kSegmentBefore:
        if (is_held && row_of[entry.piece] != kNoRow)
          rows.AddFlags(row_of[entry.piece], kRowHoldsBlocks);
        break;
      default: {
        if (!entry.is_step) break;
        RowId row = is_held ? std::exchange(row_of[entry.piece], kNoRow) : kNoRow;
        if (row == kNoRow) row = add(entry, 0, 0);
        if (is_held) row_of[entry.piece] = kNoRow;
        if (entry.what == Happened::kSegmentFree) rows.AddFlags(row, kRowHoldsBlocks);
        trace.steps.push_back({row, true, entry.t_ns});
        rows.death[row] = trace.last_step();
      }
    }
  }
  return trace;
}

std::optional<CycleRule> InferRule(const Trace& trace, const format::Definitions& definitions) {
  CycleRule rule;
  const RowKinds kinds(trace);
  InferredCycles anchors = CyclesOfAnchors(trace, kinds, definitions);
  if (anchors.ends.size() >= 2) {
    rule.kind = CycleSource::kAnchor;
    rule.source = std::move(anchors.source);
    rule.stack = anchors.stack;
    rule.burst_gap = anchors.burst_gap;
    return rule;
  }
  const std::vector<Step> begins = BeginsOfCallRuns(trace, kinds, definitions);
  std::vector<Cycle> cycles = LowWaters(trace, begins);
  rule.kind = CycleSource::kLowWater;
  rule.source = "low-water marks";
  rule.length = std::max<uint64_t>(trace.last_step() / kStretches, 1);
  if (cycles.size() < kMinLowWaters) {
    cycles = EqualParts(trace, begins);
    if (cycles.empty()) return std::nullopt;
    rule.kind = CycleSource::kEqualParts;
    rule.source = "equal parts";
    rule.length = cycles.front().end - cycles.front().begin;
  }
  for (const Cycle& cycle : cycles) rule.ends.push_back(cycle.end);
  return rule;
}

}  // namespace gmt::analysis
