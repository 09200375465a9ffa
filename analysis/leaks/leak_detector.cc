#include "analysis/leaks/leak_detector.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gmt::analysis {
namespace {

// Sizes that differ by less than a quarter are one class.
uint32_t SizeClassOf(uint64_t size) {
  const auto octave = static_cast<uint32_t>(std::bit_width(size));
  const uint64_t quarter = octave > 3 ? size >> (octave - 3) & 3 : 0;
  return 1 + octave * 4 + static_cast<uint32_t>(quarter);
}

}  // namespace

LeakDetector::Site LeakDetector::SiteOf(SiteKey key, uint64_t size) {
  if (key.stack == 0) key.size_class = SizeClassOf(size);
  const auto known = site_ids_.find(key);
  if (known != site_ids_.end()) return known->second;
  if (sites_.size() >= max_sites_) {
    key = {key.device, key.heap, kOtherStacks, 0, 0};
    if (const auto others = site_ids_.find(key); others != site_ids_.end()) return others->second;
  }
  const auto site = static_cast<Site>(sites_.size());
  site_ids_.emplace(key, site);
  sites_.push_back({key, SiteHistory(), 0});
  return site;
}

void LeakDetector::FindDevice(int32_t device) {
  const auto at = std::lower_bound(devices_.begin(), devices_.end(), device,
                                   [](const OfDevice& of, int32_t d) { return of.device < d; });
  last_device_ = static_cast<size_t>(at - devices_.begin());
  if (at == devices_.end() || at->device != device) {
    OfDevice of;
    of.device = device;
    devices_.insert(at, std::move(of));
  }
}

void LeakDetector::OnBirth(Site site, uint64_t size) {
  Watched& watched = sites_[site];
  watched.history.Birth(grid_, size);
  DeviceOf(watched.key.device).Birth(grid_, size);
}

void LeakDetector::OnFree(Site site, uint64_t size, uint32_t birth_cycle) {
  Watched& watched = sites_[site];
  watched.history.Free(grid_, size, birth_cycle);
  DeviceOf(watched.key.device).Free(grid_, size, birth_cycle);
}

void LeakDetector::TakeBack(Site site, uint64_t size, uint32_t birth_cycle) {
  Watched& watched = sites_[site];
  watched.history.TakeBack(grid_, size, birth_cycle);
  DeviceOf(watched.key.device).TakeBack(grid_, size, birth_cycle);
}

void LeakDetector::TakeBackHeldBefore(int32_t device, uint64_t bytes) {
  DeviceOf(device).TakeBack(grid_, bytes, grid_.cycle());
}

void LeakDetector::BeginAnew() {
  grid_ = {};
  for (Watched& site : sites_) site = {site.key, SiteHistory(), 0};
  devices_.clear();
  last_device_ = 0;
  from_before_.clear();
}

void LeakDetector::OnHeldBefore(int32_t device, uint64_t bytes) {
  DeviceOf(device).Birth(grid_, bytes);
}

void LeakDetector::OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) {
  DeviceOf(device).Free(grid_, size, 0);
  const Size key{device, heap, size};
  if (const auto known = from_before_.find(key); known != from_before_.end()) {
    known->second.Birth(grid_, size);
  } else if (from_before_.size() < kMaxSizes) {
    from_before_[key].Birth(grid_, size);
  }
}

std::vector<double> LeakDetector::FreedFromBefore(const Watched& site) const {
  std::vector<double> sum(grid_.complete(), 0);
  const SiteKey& key = site.key;
  const auto end = from_before_.upper_bound({key.device, key.heap, site.history.max_size()});
  for (auto at = from_before_.lower_bound({key.device, key.heap, site.history.min_size()});
       at != end; ++at) {
    const std::vector<double> freed = at->second.SeriesOn(grid_).births;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += freed[i];
  }
  return sum;
}

std::vector<SiteGrowth> LeakDetector::Evaluate() const {
  std::vector<SiteGrowth> grown;
  for (const Watched& site : sites_) {
    const SiteHistory& history = site.history;
    if (history.live() == 0 && !history.bursts().are_usual()) continue;
    SiteVerdict verdict = Judge(history, grid_, FreedFromBefore(site));
    if (verdict.growth == Growth::kNone) continue;
    grown.push_back({site.key, std::move(verdict), history.births(), history.live_count(),
                     history.min_size(), history.max_size(), history.new_maxima(),
                     site.awaiting_bytes});
  }
  return grown;
}

std::vector<SiteKey> LeakDetector::SitesWith(uint64_t births) const {
  std::vector<SiteKey> keys;
  for (const Watched& site : sites_) {
    if (site.history.births() >= births) keys.push_back(site.key);
  }
  return keys;
}

std::vector<DeviceMinima> LeakDetector::Minima() const {
  std::vector<DeviceMinima> minima;
  const double cycles = grid_.cycles_per_chunk();
  for (const auto& [device, history, unreported] : devices_) {
    DeviceMinima& of = minima.emplace_back();
    of.device = device;
    of.least = history.SeriesOn(grid_).least;
    const double shore = static_cast<double>(kSeaLevel) - static_cast<double>(unreported);
    for (double& least : of.least) least = std::max(0.0, least - shore);
    const size_t burn_in = BurnInOf(grid_.cycle()) / grid_.cycles_per_chunk();
    if (of.least.size() <= burn_in) continue;
    const Trend trend =
        TheilSen({of.least.begin() + static_cast<std::ptrdiff_t>(burn_in), of.least.end()});
    of.bytes_per_cycle = {trend.slope / cycles, trend.low / cycles, trend.high / cycles};
  }
  return minima;
}

}  // namespace gmt::analysis
