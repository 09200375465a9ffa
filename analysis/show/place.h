// analysis/show/place.h
//
// The life of an address: what lay there, and when.
//
// Thread safety: pure function. Cost: one walk over the rows.

#ifndef GMT_ANALYSIS_SHOW_PLACE_H_
#define GMT_ANALYSIS_SHOW_PLACE_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct Place {
  uint64_t address = 0;
  // Rows over the address: blocks, host memory and regions, and the driver's memory below them, each by
  // birth. A handle is found by its own number.
  std::vector<RowId> inner, outer;
  std::vector<uint32_t> mappings;  // indexes of Trace::mappings, by birth
  // The row whose block ends last before the address and the one that begins first behind it, of
  // blocks alive at the end; kNoRow where there is none. Only where nothing lay there.
  RowId below = kNoRow, above = kNoRow;

  bool empty() const { return inner.empty() && outer.empty() && mappings.empty(); }
};

Place PlaceAt(const Trace& trace, uint64_t address);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_PLACE_H_
