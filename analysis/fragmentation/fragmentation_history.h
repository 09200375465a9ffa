// analysis/fragmentation/fragmentation_history.h
//
// How a caching allocator's free memory, and why it is free, changed over a recording: the sums of
// fragmentation.h at a number of moments.
//
//   H1  The recording is divided into parts with equal numbers of births and deaths. Each part is
//       shown at the moment at which most bytes of the device are in blocks, so that a peak is not
//       missed between two moments.
//   H2  reserved - allocated = the sum of the split, at each moment.
//
// Thread safety: pure function. Cost: two walks over the steps, and for each moment the rows that
// are held then.

#ifndef GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_HISTORY_H_
#define GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/fragmentation/fragmentation.h"

namespace gmt::analysis {

struct FragmentationMoment {
  Step step = 0;
  int64_t t_ns = 0;
  uint64_t reserved_bytes = 0, allocated_bytes = 0;
  FragmentationSplit split;
};

// In order; at most `moments` of them, fewer for a recording with fewer steps.
std::vector<FragmentationMoment> FragmentationHistory(const Examination& examination,
                                                      int32_t device, size_t moments);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_HISTORY_H_
