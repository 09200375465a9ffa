// analysis/fragmentation/segment_map.h
//
// SegmentMap: the layout of the driver memory that a caching allocator holds, at one moment.
//
//   segment    0x7f00 |--live--|.......free.......|--awaiting--|..free..|
//   expandable 0x9f00 |--live--|..free..|=====releasable page=====|..free..|--live--|
//
// Adjacent pages form one segment, because an expandable segment's blocks lie across them. A
// segment belongs to the stream whose blocks it holds: caching allocators organise their lists in
// this way.
//
// Invariant: the pieces of a segment cover it in order, each byte once, even if a damaged recording
// has overlapping blocks.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_
#define GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// What PyTorch's allocator requests from the driver at a time, by the size of the request
// (c10/cuda/CUDACachingAllocator.cpp: kSmallBuffer, kLargeBuffer), and the pages of expandable
// segments.
inline constexpr uint64_t kSmallSegmentBytes = 2 << 20;
inline constexpr uint64_t kLargePageBytes = 20 << 20;

struct Piece {
  enum Kind : uint8_t { kLive, kFree, kAwaiting, kReleasable };
  Kind kind = kLive;
  uint64_t address = 0, size = 0;
  RowId row = kNoRow;  // for a block

  uint64_t end() const { return address + size; }
  bool is_free() const { return kind == kFree || kind == kReleasable; }
};

struct SegmentMap {
  RowId row = kNoRow;  // of the segment's driver memory; for an expandable one, of its first page
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> stream;
  bool is_small = false;  // of PyTorch's pool for blocks up to 1 MiB
  bool is_private = false, is_expandable = false;
  std::vector<Piece> pieces;  // by address, without gaps

  uint64_t end() const { return address + size; }
};

// Returns the segments of a device after a step, by address.
std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step);

// The same, for callers that know the rows held or pending (T7) after the step. Examines no other
// rows, except for segments without a block: their stream and pool are those of their first blocks,
// if those came soon.
std::vector<SegmentMap> SegmentsAfter(const Trace& trace, int32_t device, Step step,
                                      const std::vector<RowId>& rows);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_SEGMENT_MAP_H_
