// analysis/fragmentation/fragmentation.h
//
// Fragmentation: why a caching allocator holds more than its live blocks take, at one moment.
//
//   reserved - allocated = releasable + pinned + stream + private_pool + awaiting_stream
//
//   releasable       in segments and pages without a block: empty_cache() gives it back
//   pinned           free beside live blocks: only a request that fits and is of that stream can use it
//   stream           free, but in the lists of other streams than the one that asks
//   private_pool     free in the pools of graphs and of the program
//   awaiting_stream  freed, and not to be used before other streams are done
//
// Each byte is of the last of these causes, in that order, that holds for it.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_
#define GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination.h"
#include "analysis/instant.h"

namespace gmt::analysis {

struct FragmentationSplit {
  uint64_t releasable = 0, pinned = 0, stream = 0, private_pool = 0, awaiting_stream = 0;

  uint64_t sum() const { return releasable + pinned + stream + private_pool + awaiting_stream; }
};

// A live block that keeps free memory from being given back or joined.
struct Pin {
  RowId row = kNoRow;
  uint64_t pinned_bytes = 0;  // free bytes beside it that no other block keeps, else its share
};

// A place in a segment, for a map of addresses.
struct Piece {
  enum Kind : uint8_t { kLive, kFree, kAwaiting, kReleasable };
  Kind kind = kLive;
  uint64_t address = 0, size = 0;
  RowId row = kNoRow;  // of a block
};
struct SegmentMap {
  RowId row = kNoRow;  // of the segment's driver memory
  uint64_t address = 0, size = 0;
  std::optional<uint64_t> stream;
  bool is_small = false, is_private = false, is_expandable = false;
  std::vector<Piece> pieces;  // by address, without gaps
};

struct Fragmentation {
  int32_t device = 0;
  Instant at;
  uint64_t reserved_bytes = 0, allocated_bytes = 0;
  uint64_t free_bytes = 0;          // reserved - allocated = split.sum()
  uint64_t largest_free_bytes = 0;  // the largest piece that one request could have
  std::optional<uint64_t>
      requesting_stream;  // whose view it is; of the failed request, else the busiest
  FragmentationSplit split;
  std::optional<uint64_t> rounding_bytes;  // in live blocks, where all requested sizes are known
  std::vector<Pin> pins;                   // most pinned bytes first
  std::vector<SegmentMap> segments;        // by address
};

struct FragmentationOptions {
  At at;
  std::optional<int32_t> device;
};

// By device, of those with segments. NOT_FOUND where `at` or `device` is not in the recording.
absl::StatusOr<std::vector<Fragmentation>> FindFragmentation(const Examination& examination,
                                                             const FragmentationOptions& options);
// Of one device after a step, as a request of `stream` (nullopt: the busiest) would see it.
Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 std::optional<uint64_t> stream);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_
