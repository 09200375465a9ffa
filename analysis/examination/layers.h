// analysis/examination/layers.h
//
// Attributes each byte to one row: heaps are layers (a block lies in a segment of driver memory),
// and a byte belongs to the innermost known layer. So the rows' own bytes add up to what the device
// holds.
//
//   driver   |------ segment A ------|   |-- B --|
//   pytorch    |--1--|   |---2---|
//   own       A  1      A  2       A       B            own(A) = A - 1 - 2
//
// Regions of NVTX are the innermost layer in any memory. If two overlap, the younger one gets the
// byte.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_EXAMINATION_LAYERS_H_
#define GMT_ANALYSIS_EXAMINATION_LAYERS_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct OwnBytes {
  RowId row = kNoRow;
  uint64_t bytes = 0;  // the part of the row's size that no row of an inner layer covers
};

// Returns an entry for every row held after `step`, ordered by row id.
std::vector<OwnBytes> OwnBytesAfter(const Trace& trace, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_LAYERS_H_
