// analysis/fragmentation/fragmentation.h
//
// Fragmentation: why a caching allocator holds more than its live blocks occupy, at one moment.
//
//   reserved - allocated = releasable + pinned + stream + private_pool + awaiting_stream
//
// Each byte outside live blocks belongs to the first of these that applies:
//
//   awaiting_stream  freed, but not usable before other streams are done
//   private_pool     free in the pools of graphs and of the program
//   releasable       in segments and pages without a block, of any stream: freed by empty_cache()
//   stream           free beside blocks, in the lists of other streams than the requesting one
//   pinned           free beside blocks: only a request that fits and is of that stream can use it
//
// docs/fragmentation.md defines private pools and says what cannot be known about pools.
//
// Thread safety: pure functions. Cost: one walk over the rows, two if the stream of a segment
// without a live block is unknown.

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

// A live block that prevents free memory from being released or merged. Free memory between two
// blocks counts half for each, so that all pins add up to the free memory beside live blocks.
struct Pin {
  RowId row = kNoRow;
  uint64_t pinned_bytes = 0;
};

// Pins of one allocating stack.
struct PinGroup {
  uint32_t stack = 0, forward_stack = 0;
  uint64_t blocks = 0, block_bytes = 0, pinned_bytes = 0;
  RowId largest = kNoRow;  // its block that pins most
  Step first_birth = 0;    // of its oldest block
};

struct Fragmentation {
  int32_t device = 0;
  Instant at;
  uint64_t reserved_bytes = 0, allocated_bytes = 0;
  uint64_t free_bytes = 0;  // reserved - allocated = split.sum()
  // The largest piece that a single request could use: in the requesting stream and its pool.
  uint64_t largest_free_bytes = 0;
  std::optional<uint64_t> requesting_stream;  // whose view this is
  FragmentationSplit split;
  std::optional<uint64_t> rounding_bytes;  // in live blocks, if all requested sizes are known
  // An estimate of what PyTorch's expandable_segments would release: the whole pages of 20 MiB
  // (small pools: 2 MiB) that the free pieces would fill if they were contiguous. 0 if all segments
  // are expandable.
  uint64_t expandable_bytes = 0;
  std::vector<Pin> pins;             // most pinned bytes first
  std::vector<PinGroup> pin_groups;  // the pins by stack, most pinned bytes first
  std::vector<SegmentMap> segments;  // by address
};

// Groups the pins by stack, most pinned bytes first.
std::vector<PinGroup> GroupPins(const Trace& trace, const std::vector<Pin>& pins);

struct FragmentationOptions {
  At at;
  std::optional<int32_t> device;
};

// Sorted by device; omits devices without segments. Returns NOT_FOUND if `at` or `device` is not in
// the recording.
absl::StatusOr<std::vector<Fragmentation>> FindFragmentation(const Examination& examination,
                                                             const FragmentationOptions& options);
// One device after a step, as `requester` would see it.
Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 const Requester& requester = {});
// The same, for callers that know the rows held or pending after the step (segment_map.h).
Fragmentation FragmentationAfter(const Examination& examination, int32_t device, Step step,
                                 const std::vector<RowId>& rows);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_FRAGMENTATION_H_
