// analysis/fragmentation/segment_map.h
//
// SegmentMap: what lies where in the driver memory that a caching allocator holds, at one moment.
//
//   segment    0x7f00 |--live--|.......free.......|--awaiting--|..free..|
//   expandable 0x9f00 |--live--|..free..|=====releasable page=====|..free..|--live--|
//
// Pages that follow each other are one segment: an expandable segment's blocks lie across them. A
// segment is of the stream whose blocks it holds: that is how caching allocators order their lists.
//
// Invariant: the pieces of a segment cover it, in order, each byte once; whatever a damaged recording
// says of blocks that overlap.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_
#define GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// What PyTorch's allocator asks the driver for at a time, by the size of the request
// (c10/cuda/CUDACachingAllocator.cpp: kSmallBuffer, kLargeBuffer), and the pages of expandable segments.
inline constexpr uint64_t kSmallSegmentBytes = 2 << 20;
inline constexpr uint64_t kLargePageBytes = 20 << 20;

struct Piece {
  enum Kind : uint8_t { kLive, kFree, kAwaiting, kReleasable };
  Kind kind = kLive;
  uint64_t address = 0, size = 0;
  RowId row = kNoRow;  // of a block

  uint64_t end() const { return address + size; }
  bool is_free() const { return kind == kFree || kind == kReleasable; }
};

struct SegmentMap {
  RowId row = kNoRow;  // of the segment's driver memory, of an expandable one the first page
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> stream;
  bool is_small = false;  // of PyTorch's pool for blocks of up to 1 MiB
  bool is_private = false, is_expandable = false;
  std::vector<Piece> pieces;  // by address, without gaps

  uint64_t end() const { return address + size; }
};

// The segments of a device after a step, by address.
std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step);

// The same for who knows the rows that are held or pending (T7) after the step: nothing else is looked
// at, but for segments without a block, whose stream and pool are those of the first blocks that they
// had, if those came soon.
std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step,
                                      const std::vector<RowId>& rows);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_
