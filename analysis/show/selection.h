// analysis/show/selection.h
//
// Selection: the rows of a trace (analysis/trace/trace.h) that a subject stands for. The ids of a
// report's rows select what those rows contain, at every moment of the recording.
//
//   S1  Counted rows lie in one layer, so that amounts can be added up: for a thread that allocated
//       segments and blocks in them, the blocks; for a device, its driver memory. Rows left out of
//       the count are still selected.
//
// Thread safety: one thread at a time (Examination). Cost: one walk over the rows; names are
// compared once per stack.

#ifndef GMT_ANALYSIS_SHOW_SELECTION_H_
#define GMT_ANALYSIS_SHOW_SELECTION_H_

#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"
#include "analysis/show/subject.h"

namespace gmt::analysis {

class Selection {
 public:
  // Counts all rows unless `counted` is given.
  explicit Selection(std::vector<bool> rows);
  Selection(std::vector<bool> rows, std::vector<bool> counted);

  bool Has(RowId row) const { return rows_[row]; }
  bool Counts(RowId row) const { return counted_[row]; }
  RowId count() const { return count_; }
  RowId left_out() const { return left_out_; }

 private:
  std::vector<bool> rows_, counted_;
  RowId count_ = 0, left_out_ = 0;
};

// REQUIRES: subject.is_memory(). The selection is empty if nothing matches; a suspect selects what
// its stacks have allocated on its device.
Selection Select(const Examination& examination, const Categories& categories,
                 const LeakReport& leaks, const Subject& subject);

// What the recording has of a subject's kind, for error messages: "stack/1 to stack/12",
// "heap/driver, heap/pytorch"; "" if it has none.
std::string WhatThereIs(const Examination& examination, const Categories& categories,
                        const LeakReport& leaks, Subject::Kind kind);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_SELECTION_H_
