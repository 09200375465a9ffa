#include "analysis/show/place.h"

namespace gmt::analysis {
namespace {

bool Covers(uint64_t address, uint64_t size, uint64_t wanted) {
  return address <= wanted && (wanted - address < size || (size == 0 && wanted == address));
}

bool CoversRow(const Rows& rows, RowId row, uint64_t wanted) {
  if ((rows.flags[row] & kRowHandle) != 0) return rows.address[row] == wanted;
  return Covers(rows.address[row], rows.size[row], wanted);
}

void NoteNeighbours(const Rows& rows, RowId row, Place& place) {
  if (rows.death[row] != kNever || (rows.flags[row] & kRowHandle) != 0) return;
  const uint64_t address = rows.address[row];
  if (address <= place.address) {
    if (place.below == kNoRow || rows.address[place.below] < address) place.below = row;
  } else if (place.above == kNoRow || address < rows.address[place.above]) {
    place.above = row;
  }
}

}  // namespace

// Rows are already in the order of their births.
Place PlaceAt(const Trace& trace, uint64_t address) {
  const Rows& rows = trace.rows;
  Place place;
  place.address = address;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (CoversRow(rows, row, address)) {
      (rows.heap[row] == kDriverHeap ? place.outer : place.inner).push_back(row);
    } else {
      NoteNeighbours(rows, row, place);
    }
  }
  for (uint32_t i = 0; i < trace.mappings.size(); ++i) {
    const Mapping& mapping = trace.mappings[i];
    if (Covers(mapping.address, mapping.size, address)) place.mappings.push_back(i);
  }
  return place;
}

}  // namespace gmt::analysis
