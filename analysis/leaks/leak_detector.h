// analysis/leaks/leak_detector.h
//
// LeakDetector: observes births, frees and cycle ends one by one, and determines at any time which
// places of the program hold more after each cycle. It stores no blocks: the caller passes the
// birth cycle of what it frees. So it can run for days.
//
//   LeakDetector detector;
//   const auto site = detector.SiteOf({.device = 0, .heap = heap, .stack = stack}, size);
//   detector.OnBirth(site, size);
//   detector.OnCycleEnd();
//   detector.OnFree(site, size, /*birth_cycle=*/0);
//   for (const SiteGrowth& growth : detector.Evaluate()) ...
//
// A site is a stack on a device and in a heap. If the stack is unknown, a site is a class of
// similar block sizes.
//
// Invariants
//   Memory: at most `max_sites` sites of bounded size each; further ones share one site. At most
//   kMaxSizes sizes of blocks from before the recording.
// Thread safety: one thread at a time. Cost: constant per event.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_DETECTOR_H_
#define GMT_ANALYSIS_LEAKS_LEAK_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/leaks/site_history.h"
#include "analysis/leaks/site_verdict.h"

namespace gmt::analysis {

struct SiteKey {
  int32_t device = 0;
  uint32_t heap = 0;
  uint32_t stack = 0, forward_stack = 0;
  uint32_t size_class = 0;  // used if the stack is unknown, otherwise 0

  bool operator==(const SiteKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const SiteKey& k) {
    return H::combine(std::move(h), k.device, k.heap, k.stack, k.forward_stack, k.size_class);
  }
};

struct SiteGrowth {
  SiteKey key;
  SiteVerdict verdict;
  uint64_t births = 0, live_count = 0;
  uint64_t min_size = 0, max_size = 0;
  uint32_t new_maxima = 0;
  uint64_t awaiting_bytes = 0;  // freed, but awaiting streams
};

// The minimum that a device held in each chunk of cycles.
struct DeviceMinima {
  int32_t device = 0;
  std::vector<double> least;  // bytes, from the first chunk on
  Trend bytes_per_cycle;      // from the end of burn-in on
};

class LeakDetector {
 public:
  static constexpr size_t kMaxSites = 1 << 16, kMaxSizes = 4096;
  // The stack of the site shared by sites beyond the limit.
  static constexpr uint32_t kOtherStacks = UINT32_MAX;
  using Site = uint32_t;

  explicit LeakDetector(size_t max_sites = kMaxSites) : max_sites_(max_sites) {}

  // `size`: of the block; used if the key has no stack.
  Site SiteOf(SiteKey key, uint64_t size);
  void OnBirth(Site site, uint64_t size);
  void OnFree(Site site, uint64_t size, uint32_t birth_cycle);
  // A block was freed, but its allocator awaits streams before reusing it. It counts as held until
  // OnFree.
  void OnAwaits(Site site, uint64_t size) { sites_[site].awaiting_bytes += size; }
  void OnAwaited(Site site, uint64_t size) { sites_[site].awaiting_bytes -= size; }
  // Revokes a birth at the site, because the memory turned out to be a framework's segment.
  void TakeBack(Site site, uint64_t size, uint32_t birth_cycle);
  // Memory from before the recording.
  void OnHeldBefore(int32_t device, uint64_t bytes);
  void TakeBackHeldBefore(int32_t device, uint64_t bytes);
  // Memory freed now was held from the beginning, but had not been reported.
  void OnHeldAllAlong(int32_t device, uint64_t bytes) {
    DeviceOf(device);
    devices_[last_device_].unreported += bytes;
  }
  void OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size);
  void OnCycleEnd() { grid_.EndCycle(); }
  // Restarts before the first cycle; keeps the sites' identities.
  void BeginAnew();

  const SiteKey& KeyOf(Site site) const { return sites_[site].key; }

  // The number of complete cycles, which is the index of the current one.
  uint32_t cycle() const { return grid_.cycle(); }
  const ChunkGrid& grid() const { return grid_; }
  size_t sites() const { return sites_.size(); }

  // Returns the sites that grew. Cost: linear in sites.
  std::vector<SiteGrowth> Evaluate() const;
  std::vector<DeviceMinima> Minima() const;
  // Returns the sites with at least `births` births.
  std::vector<SiteKey> SitesWith(uint64_t births) const;

 private:
  struct Size {
    int32_t device = 0;
    uint32_t heap = 0;
    uint64_t size = 0;
    auto operator<=>(const Size&) const = default;
  };
  struct Watched {
    SiteKey key;
    SiteHistory history = SiteHistory();
    uint64_t awaiting_bytes = 0;
  };
  std::vector<double> FreedFromBefore(const Watched& site) const;
  // A device may free memory that was never reported: its history starts at this level so that it
  // cannot become negative.
  static constexpr uint64_t kSeaLevel = uint64_t{1} << 50;
  struct OfDevice {
    int32_t device = 0;
    SiteHistory history{kSeaLevel};
    uint64_t unreported = 0;  // bytes held at first
  };
  SiteHistory& DeviceOf(int32_t device) {
    const bool is_last = last_device_ < devices_.size() && devices_[last_device_].device == device;
    if (!is_last) FindDevice(device);
    return devices_[last_device_].history;
  }
  void FindDevice(int32_t device);

  size_t max_sites_;
  ChunkGrid grid_;
  absl::flat_hash_map<SiteKey, Site> site_ids_;
  std::vector<Watched> sites_;
  std::vector<OfDevice> devices_;            // all that is held, by device; in order
  size_t last_device_ = 0;                   // index of the last one looked up
  std::map<Size, SiteHistory> from_before_;  // births: frees of blocks whose birth was not seen
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_DETECTOR_H_
