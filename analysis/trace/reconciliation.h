// analysis/trace/reconciliation.h
//
// Reconciliation: compares our sums of the recorded events with the totals that a framework's
// allocator reports with each of its events. A difference shows that events were missed, and when.
//
//   event        ours   theirs
//   alloc 512     512      512
//   free 1024       -        -     (missed)
//   alloc 512    1024     2048     first difference, -1024
//
// Thread safety: one thread at a time. Cost: additions per event; a hash look-up if the heap
// or the device is another one than before.

#ifndef GMT_ANALYSIS_TRACE_RECONCILIATION_H_
#define GMT_ANALYSIS_TRACE_RECONCILIATION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "format/event.h"

namespace gmt::analysis {

// One of the two totals of an allocator, compared at each of its events.
struct TotalCheck {
  struct Difference {
    int64_t t_ns = 0;
    uint64_t ours = 0, theirs = 0;

    uint64_t bytes() const { return ours > theirs ? ours - theirs : theirs - ours; }
  };
  uint64_t compared = 0, different = 0;  // events
  Difference first, largest;             // set if `different` > 0
  Difference last;                       // at the last event, equal or not

  void Compare(int64_t t_ns, uint64_t ours, uint64_t theirs) {
    ++compared;
    last = {t_ns, ours, theirs};
    if (ours != theirs) [[unlikely]]
      NoteDifference();
  }

 private:
  void NoteDifference();  // `last` differs
};

struct Reconciliation {
  std::string heap;
  int32_t device = 0;
  TotalCheck allocated;  // live blocks
  TotalCheck reserved;   // the segments that contain them
};

// Keeps our sums per heap and device and the results of the comparisons.
class Reconciler {
 public:
  void AddBlock(uint32_t heap, int32_t device, uint64_t bytes) { Of(heap, device).blocks += bytes; }
  void RemoveBlock(uint32_t heap, int32_t device, uint64_t bytes) {
    Of(heap, device).blocks -= bytes;
  }
  void AddSegment(int32_t device, uint64_t bytes) { SegmentsOf(device) += bytes; }
  void RemoveSegment(int32_t device, uint64_t bytes) { SegmentsOf(device) -= bytes; }

  // Discards the comparisons made so far, because our sums turned out to be incomplete. Keeps the
  // sums.
  void ForgetComparisons();
  // REQUIRES: the event's effect has been reported through the functions above.
  void Compare(uint32_t heap, const format::Event& event) {
    const auto device = static_cast<int32_t>(event.device);
    Sums& sums = Of(heap, device);
    if (event.has(format::kHasTotalAllocated))
      sums.allocated.Compare(event.t_ns, sums.blocks, event.total_allocated);
    if (event.has(format::kHasTotalReserved))
      sums.reserved.Compare(event.t_ns, SegmentsOf(device), event.total_reserved);
  }

  // Sorted by heap and device; only those that reported totals.
  std::vector<Reconciliation> Result(const std::vector<std::string>& heaps) const;

 private:
  struct Sums {
    uint64_t blocks = 0;
    TotalCheck allocated, reserved;
  };
  Sums& Of(uint32_t heap, int32_t device) {
    const uint64_t key = KeyOf(heap, device);
    return last_ != nullptr && key == last_key_ ? *last_ : Find(key);
  }
  Sums& Find(uint64_t key);
  static uint64_t KeyOf(uint32_t heap, int32_t device) {
    return uint64_t{heap} << 32 | static_cast<uint32_t>(device);
  }
  // The bytes of a device's segments.
  uint64_t& SegmentsOf(int32_t device) {
    const auto index = static_cast<uint32_t>(device);
    return index < segments_.size() ? segments_[index] : segments_of_further_devices_[device];
  }

  absl::node_hash_map<uint64_t, Sums> sums_;  // by heap and device
  uint64_t last_key_ = 0;
  Sums* last_ = nullptr;                 // most events are of one heap and device
  std::array<uint64_t, 16> segments_{};  // by device
  absl::flat_hash_map<int32_t, uint64_t> segments_of_further_devices_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_RECONCILIATION_H_
