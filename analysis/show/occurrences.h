// analysis/show/occurrences.h
//
// What happened in all ranges, or between all marks, of one name.
//
// Thread safety: one thread at a time (Examination). Cost: one walk over the steps.

#ifndef GMT_ANALYSIS_SHOW_OCCURRENCES_H_
#define GMT_ANALYSIS_SHOW_OCCURRENCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"

namespace gmt::analysis {

// A range from its beginning to its end; a mark until the next of its name, or until the end.
struct Occurrence {
  Step begin = 0, end = 0;
  int64_t begin_t_ns = 0, end_t_ns = 0;
  bool whole = true;              // both beginning and end were seen
  std::optional<uint64_t> index;  // of a mark
  uint32_t thread = 0, stack = 0;
  uint64_t live_begin = 0, live_end = 0, peak = 0;  // bytes allocated

  int64_t change() const { return static_cast<int64_t>(live_end - live_begin); }
};

struct Occurrences {
  std::string name;
  bool is_range = false;
  int32_t device = 0;           // whose bytes: the device that held most
  std::vector<Occurrence> all;  // ordered by beginning
};

// Finds the ranges of that name or, if there are none, the marks. `ranges` and `marks` restrict the
// search. `all` is empty if there is neither.
Occurrences FindOccurrences(const Examination& examination, const std::string& name,
                            bool ranges = true, bool marks = true);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_OCCURRENCES_H_
