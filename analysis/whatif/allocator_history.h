// analysis/whatif/allocator_history.h
//
// AllocatorHistory: what a program requested of PyTorch's allocator on one device, in order, and
// which segments that led to in the recording. The input of a replay (replay.h).
//
//   recorded   block   segment   block   free   release   block awaited, completed   OOM
//   requests   allocate          allocate free  empty     free later, complete       allocate
//   segments           1: +20 MiB               4: -20 MiB
//
// A segment is allocated within the request that needs it, before the block is reported: so the
// segments between two requests belong to the second one. Memory of the process that is not the
// allocator's (contexts, NCCL, cuBLAS) is a request, too: it changes what the driver can provide.
//
// What a recording does not contain: which pool a block is from. Blocks that were allocated during
// the capture of a graph on its stream are assigned to a pool of that capture.
//
// Ownership: independent of the trace.
// Thread safety: plain data; pure function. Cost: one walk over the steps.

#ifndef GMT_ANALYSIS_WHATIF_ALLOCATOR_HISTORY_H_
#define GMT_ANALYSIS_WHATIF_ALLOCATOR_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "analysis/whatif/allocator_settings.h"
#include "analysis/whatif/caching_allocator.h"

namespace gmt::analysis {

struct AllocatorRequest {
  enum Kind : uint8_t {
    kAllocate,
    kFree,
    kFreeWhenAwaited,
    kComplete,
    kEmptyCache,
    kOutside,  // bytes: of the process, not of this allocator, from now on
    kFailed,   // an allocation that failed in the recording
  };
  Kind kind = kAllocate;
  uint16_t pool = 0;  // 0: the common one
  uint32_t stream = 0;
  uint32_t allocation = 0;
  uint64_t bytes = 0;
  Step step = 0;  // it happened after this step of the recording and before the next
};

struct SegmentEvent {
  uint32_t request = 0;  // index of the request in which it happened
  bool is_release = false;
  uint64_t bytes = 0;

  friend auto operator<=>(const SegmentEvent&, const SegmentEvent&) = default;
};

struct StartSegment {
  CachingAllocator::Place place;
  bool is_small = false, is_expandable = false;
  std::vector<CachingAllocator::Piece> pieces;
};

// How long a call of the driver took on average, if the recording has such calls and their time.
struct DriverCosts {
  std::optional<double> allocate_ns, release_ns;  // for a segment
  std::optional<double> map_ns, unmap_ns;         // for a page of an expandable segment
};

struct AllocatorHistory {
  int32_t device = 0;
  AllocatorSettings settings;  // with which the process was recorded
  // Recorded options that decide nothing here, separated by commas: those of pinned memory, ...
  std::string other_options;
  std::optional<TorchVersion> torch;
  DriverCosts costs;
  uint64_t device_bytes = 0;  // 0 if unknown
  // What the driver could provide to this process, if known: the device without the contexts and
  // other processes that are not recorded.
  std::optional<uint64_t> capacity;
  std::vector<StartSegment> start;
  CachingAllocator::SegmentAddresses segment_addresses;  // those in `start` come first
  std::vector<AllocatorRequest> requests;
  std::vector<SegmentEvent> segment_events;
  uint64_t peak_reserved = 0;
};

// Returns FAILED_PRECONDITION with the reason if the recording cannot be replayed: no blocks of
// PyTorch's allocator `native` on that device, events missing, or settings that are not known.
absl::StatusOr<AllocatorHistory> HistoryOf(const Examination& examination, int32_t device);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_ALLOCATOR_HISTORY_H_
