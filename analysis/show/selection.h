// analysis/show/selection.h
//
// Selection: the rows of a trace (analysis/trace/trace.h) that a subject stands for. The ids of report's rows
// select what those rows were made of, at every moment of the recording.
//
//   S1  What is counted lies in one layer: of a thread that took segments and blocks in them, the
//       blocks; of a device, what it has from the driver. So amounts can be added up. What was left out
//       for that is selected still.
//
// Thread safety: one thread at a time (Examination). Cost: one walk over the rows; names are compared
// once for a stack.

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
  // Counts all of them where `counted` is not given.
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

// REQUIRES: subject.is_memory(). Nothing is selected where nothing is of it; a suspect selects what its
// stacks have taken on its device.
Selection Select(const Examination& examination, const Categories& categories,
                 const LeakReport& leaks, const Subject& subject);

// What the recording has of a subject's kind, for who asked for another: "stack/1 to stack/12",
// "heap/driver, heap/pytorch"; "" where it has none.
std::string WhatThereIs(const Examination& examination, const Categories& categories,
                        const LeakReport& leaks, Subject::Kind kind);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_SELECTION_H_
