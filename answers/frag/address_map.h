// answers/frag/address_map.h
//
// The memory of a caching allocator as a picture in letters: a line for each of the segments with
// most free memory, the others summed up.
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

// A letter for each part of the segment: '#' live, '+' partly live, '.' free, '-' free and
// releasable, '~' awaiting a stream.
std::string PictureOf(const analysis::SegmentMap& segment, size_t letters);

// At most `lines` lines, the legend and the line for all others among them; "" without free memory.
std::string AddressMap(const std::vector<analysis::SegmentMap>& segments, size_t lines,
                       size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_ADDRESS_MAP_H_
