// analysis/show/place.h
//
// The history of an address: what was there, and when.
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
  // Rows that contain the address: blocks, host memory and regions, and the driver memory below
  // them; each ordered by birth. A handle is found by its number.
  std::vector<RowId> inner, outer;
  std::vector<uint32_t> mappings;  // indices in Trace::mappings, ordered by birth
  // Neighbours among the blocks alive at the end: the row that ends last before the address, and
  // the row that begins first after it; kNoRow if there is none. Set only if nothing was at the
  // address.
  RowId below = kNoRow, above = kNoRow;

  bool empty() const { return inner.empty() && outer.empty() && mappings.empty(); }
};

Place PlaceAt(const Trace& trace, uint64_t address);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_PLACE_H_
