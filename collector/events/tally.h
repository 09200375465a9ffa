// collector/events/tally.h
//
// Tally: counts a process's memory over its whole life, by device and heap, and by site (device,
// heap, stack, stack of the forward pass). It holds no blocks and does not grow with time.
// Therefore what is dropped from a bounded recording is still counted, and a running collector can
// answer queries without the recording.
//
//   event        live of A   live of B   of the heap   peak   at the peak: A, B
//   alloc A 5        5           0            5          5          5  0
//   alloc B 3        5           3            8          8          5  3
//   free A           0           3            3          8          5  3
//
// Bytes are counted as in the analysis of a recording (analysis/trace/trace.h, T1 to T3):
// reservations, mappings and imported memory do not count; physical memory counts until it is both
// released and unmapped.
//
// Invariants
//   A1  For a heap, each of live_bytes, live_count, allocations, allocated_bytes, frees,
//       bytes_at_peak and count_at_peak is the sum over its sites.
//   A2  allocations - frees == live_count.
//   A3  There are at most kMaxSites sites. Further ones are merged into one site per heap,
//       kOtherStack.
//
// Thread safety: one thread at a time. Cost: a hash lookup for each allocation, independent
// of the number of sites. This includes the composition at the peak: a site is copied
// when it changes for the first time after a peak.

#ifndef GMT_COLLECTOR_EVENTS_TALLY_H_
#define GMT_COLLECTOR_EVENTS_TALLY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "collector/events/live_model.h"
#include "collector/events/segments.h"
#include "session/record.h"

namespace gmt::collector {

// The stack of sites that were merged.
inline constexpr uint32_t kOtherStack = UINT32_MAX;

// Counts of one heap: a device (session::kNoDevice: the host) and a name ("driver", "host",
// "pytorch", "nvtx").
struct HeapCounts {
  uint8_t device = session::kNoDevice;
  const char* heap = "";
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t allocations = 0, allocated_bytes = 0, frees = 0;
  uint64_t failed = 0;  // allocations that were refused
  uint64_t peak_bytes = 0, peak_count = 0;
  uint64_t peak_ns = 0;  // CLOCK_MONOTONIC
  // As reported by the framework's allocator; 0 if it reports none.
  uint64_t reported_allocated = 0, reported_reserved = 0, peak_reported_reserved = 0;
  // An upper bound of what was allocated at any moment since BeginInterval(): of the driver's heap,
  // memory that was not known to hold blocks then.
  uint64_t allocated_at_most = 0;
};

bool IsDriverHeap(const HeapCounts& heap);

struct SiteCounts {
  uint32_t heap = 0;  // index in Tally::heaps()
  // Ids of the session (session/stack_table.h); 0: none, kOtherStack.
  uint32_t stack = 0, forward_stack = 0;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t allocations = 0, allocated_bytes = 0, frees = 0;
  uint64_t bytes_at_peak = 0, count_at_peak = 0;  // of its heap
};

class Tally : public LiveObserver {
 public:
  static constexpr size_t kMaxSites = 65536;

  explicit Tally(size_t max_sites = kMaxSites) : max_sites_(max_sites) {}

  // Everything that changes the live set (collector/events/live_model.h).
  void OnBorn(const Place& place, LiveModelEntry* live) override;
  void OnEnded(const Place& place, const LiveModelEntry& live) override;
  void OnRestored(const Place& place, LiveModelEntry* live) override;

  // Counts what does not change the live set: refused allocations and a framework's totals.
  void Note(const session::Record& record);

  // Begins an interval for HeapCounts::allocated_at_most.
  void BeginInterval();

  const Segments& segments() const { return segments_; }
  // Heaps in the order in which they were first seen.
  const std::vector<HeapCounts>& heaps() const { return heaps_; }
  size_t site_count() const { return sites_.size(); }
  // Returns one site, index in [0, site_count()), in the order in which they were first seen.
  SiteCounts site(size_t index) const;
  std::vector<SiteCounts> Sites() const;

 private:
  struct SiteKey {
    uint32_t heap, stack, forward_stack;

    bool operator==(const SiteKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const SiteKey& k) {
      return H::combine(std::move(h), k.heap, k.stack, k.forward_stack);
    }
  };
  // bytes_at_peak and count_at_peak are valid if `peak` equals its heap's. Otherwise the site has
  // not changed since the peak.
  struct Site {
    SiteCounts counts;
    uint32_t peak = 0;
  };
  // Physical memory, by its handle.
  struct Physical {
    LiveModelEntry live;
    uint32_t mappings = 0;
    bool released = false;
  };

  uint32_t HeapIndex(uint8_t device, session::Memory memory) {
    uint32_t& number = heap_numbers_[device][static_cast<size_t>(memory)];
    if (number == 0) number = 1 + FindOrAddHeap(device, memory);
    return number - 1;
  }
  uint32_t FindOrAddHeap(uint8_t device, session::Memory memory);
  // Returns the counts of a site, with those at the heap's last peak.
  SiteCounts& CountsOf(uint32_t heap, uint32_t site);
  // Returns the index of the site for an allocation.
  uint32_t SiteFor(uint32_t heap, const session::LiveValue& live);
  // Adds one, or returns the one for all others.
  uint32_t NewSite(uint32_t heap, const session::LiveValue& live);
  void Raise(LiveModelEntry* live, bool is_new);
  void NoteAllocated(HeapCounts* heap) const;
  void Lower(const LiveModelEntry& live);

  const size_t max_sites_;
  std::vector<HeapCounts> heaps_;
  std::vector<uint32_t> peaks_;  // by heap: how often it exceeded its peak
  // Index + 1 of the heap, by device and memory; 0: not known yet.
  std::array<std::array<uint32_t, static_cast<size_t>(session::Memory::kLast) + 1>, 256>
      heap_numbers_{};
  std::vector<Site> sites_;
  absl::flat_hash_map<SiteKey, uint32_t> site_index_;
  absl::flat_hash_map<uint64_t, Physical> physical_;
  Segments segments_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_TALLY_H_
