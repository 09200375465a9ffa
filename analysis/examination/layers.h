// analysis/examination/layers.h
//
// Who has each byte: heaps are layers (a block lies in a segment of driver memory), and a byte
// belongs to the innermost layer that is known. So what the rows have adds up to what the device
// holds.
//
//   driver   |------ segment A ------|   |-- B --|
//   pytorch    |--1--|   |---2---|
//   own       A  1      A  2       A       B            own(A) = A - 1 - 2
//
// Regions of NVTX are the innermost layer, wherever they lie; of two that overlap, the younger has
// the byte.
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
  uint64_t bytes = 0;  // of the row's size, what no row of an inner layer covers
};

// For every row held after `step`, in order of their ids.
std::vector<OwnBytes> OwnBytesAfter(const Trace& trace, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_LAYERS_H_
