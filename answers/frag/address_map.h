// answers/frag/address_map.h
//
// A map of a caching allocator's memory in letters. The segments with the most free memory have a
// line each; the others are summed up.
//
//   0x7f0200000000  2.00 GiB  ######....##..++....####   stream 7
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_FRAG_ADDRESS_MAP_H_
#define GMT_ANSWERS_FRAG_ADDRESS_MAP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/fragmentation/segment_map.h"

namespace gmt::answers {

// Returns one letter for each part of the segment: '#' live, '+' partly live, '.' free, '-' free
// and releasable, '~' awaiting a stream.
std::string PictureOf(const analysis::SegmentMap& segment, size_t letters);

// Returns at most `lines` lines, including the legend and the line for all other segments. Returns
// "" if no memory is free.
std::string AddressMap(const std::vector<analysis::SegmentMap>& segments, size_t lines,
                       size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_ADDRESS_MAP_H_
