// analysis/fragmentation/fragmentation.h
//
// Fragmentation: why a caching allocator holds more than its live blocks take, at one moment.
//
//   reserved - allocated = releasable + pinned + stream + private_pool + awaiting_stream
//
// Each byte that is no live block's is of the first of these that holds for it:
//
//   awaiting_stream  freed, and not to be used before other streams are done
//   private_pool     free in the pools of graphs and of the program
//   releasable       in segments and pages without a block, of whatever stream: empty_cache() gives
//                    it back
//   stream           free beside blocks, in the lists of other streams than the one that asks
//   pinned           free beside blocks: only a request that fits and is of that stream can use it
//
// What a private pool is, and what cannot be known of pools: docs/fragmentation.md.
//
// Thread safety: pure functions. Cost: one walk over the rows, two where a segment without a live
// block does not say its stream.

#ifndef GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_
#define GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/fragmentation/requester.h"
#include "analysis/fragmentation/segment_map.h"

namespace gmt::analysis {

struct FragmentationSplit {
  uint64_t releasable = 0, pinned = 0, stream = 0, private_pool = 0, awaiting_stream = 0;

  uint64_t sum() const { return releasable + pinned + stream + private_pool + awaiting_stream; }
};

// A live block that keeps free memory from being given back or joined. Free memory between two blocks
// counts half for each, so that all pins add up to what lies beside live blocks.
struct Pin {
  RowId row = kNoRow;
  uint64_t pinned_bytes = 0;
};

// Pins that one line of code allocated.
struct PinGroup {
  uint32_t stack = 0, forward_stack = 0;
  uint64_t blocks = 0, block_bytes = 0, pinned_bytes = 0;
  RowId largest = kNoRow;  // the block of it that pins most
  Step first_birth = 0;    // of its oldest block
};

struct Fragmentation {
  int32_t device = 0;
  Instant at;
  uint64_t reserved_bytes = 0, allocated_bytes = 0;
  uint64_t free_bytes = 0;  // reserved - allocated = split.sum()
  // The largest piece that one request could have: of the stream and of its pool.
  uint64_t largest_free_bytes = 0;
  std::optional<uint64_t> requesting_stream;  // whose view it is
  FragmentationSplit split;
  std::optional<uint64_t> rounding_bytes;  // in live blocks, where all requested sizes are known
  // What PyTorch's expandable_segments would give back, as an estimate: the whole pages of 20 MiB
  // (of small pools 2 MiB) that the free pieces hold, could they lie end to end. 0 where all
  // segments are expandable.
  uint64_t expandable_bytes = 0;
  std::vector<Pin> pins;             // most pinned bytes first
  std::vector<SegmentMap> segments;  // by address
};

// The pins by stack, most pinned bytes first.
std::vector<PinGroup> GroupPins(const Trace& trace, const std::vector<Pin>& pins);

struct FragmentationOptions {
  At at;
  std::optional<int32_t> device;
};

// By device, of those with segments: none where no allocator kept any. NOT_FOUND where `at` or
// `device` is not in the recording.
absl::StatusOr<std::vector<Fragmentation>> FindFragmentation(const Examination& examination,
                                                             const FragmentationOptions& options);
// Of one device after a step, as the requester would see it.
Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 const Requester& requester = {});

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_
