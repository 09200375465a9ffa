// viewer/questions/held_rows.h
//
// HeldRows: finds the memory that is held, or freed and pending (analysis/trace/trace.h, T7), after
// any event, without a replay from the beginning. A row that is held then was held at the last
// checkpoint or was born since:
//
//   event        0 ........ checkpoint ............ queried
//   held then    A B C D    B D                     D F     = of {B, D} and those born since {E,
//                F},
//                                                             what is not gone by then
//
// Births are visited in order, which is nearly the order in memory; deaths are not visited at all.
//
// Thread safety: one thread at a time. Cost: the first call walks over all births; later calls
// visit those since a checkpoint (about 10,000) and what is held. Memory: at most kMaxIds rows, or
// one checkpoint.

#ifndef GMT_VIEWER_QUESTIONS_HELD_ROWS_H_
#define GMT_VIEWER_QUESTIONS_HELD_ROWS_H_

#include <cstddef>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::viewer {

class HeldRows {
 public:
  static constexpr analysis::Step kSpacing = 1 << 16;
  static constexpr size_t kMaxIds = size_t{16} << 20;

  // `spacing`: events between checkpoints; increased if `max_ids` would be exceeded.
  explicit HeldRows(const analysis::Trace& trace, analysis::Step spacing = kSpacing,
                    size_t max_ids = kMaxIds)
      : trace_(trace), spacing_(spacing), max_ids_(max_ids) {}

  // Returns the rows held or pending after an event, by birth; those from before by number.
  // REQUIRES: event <= trace.last_step().
  std::vector<analysis::RowId> After(analysis::Step event);

  // Creates the checkpoints. After() calls it if necessary.
  void Prepare();

 private:
  struct Checkpoint {
    analysis::Step step = 0;
    std::vector<analysis::RowId> rows;
  };

  bool IsThereAfter(analysis::RowId row, analysis::Step step) const;
  std::vector<analysis::RowId> FromBefore() const;
  std::vector<analysis::RowId> Advance(const Checkpoint& from, analysis::Step to) const;
  void Thin();

  const analysis::Trace& trace_;
  analysis::Step spacing_;
  const size_t max_ids_;
  size_t ids_ = 0;
  std::vector<Checkpoint> checkpoints_;  // by step; the first is at step 0
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_HELD_ROWS_H_
