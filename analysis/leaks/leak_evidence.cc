#include "analysis/leaks/leak_evidence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/leaks/leak_cycles.h"
#include "analysis/leaks/leak_outlook.h"
#include "analysis/leaks/leak_walk.h"
#include "analysis/median.h"

namespace gmt::analysis {
namespace {

constexpr double kPoolGrowth = 0.05;  // relative to what the pool held after burn-in

// Times in a damaged or hostile recording can have any value.
int64_t Saturated(int64_t from, int64_t to) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(to, from, &difference)) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(difference, 0);
}

int64_t MedianPeriod(const std::vector<Cycle>& cycles) {
  std::vector<int64_t> periods;
  for (const Cycle& cycle : cycles) periods.push_back(Saturated(cycle.begin_t_ns, cycle.end_t_ns));
  return UpperMedian(std::move(periods));
}

}  // namespace

std::vector<CycleMinima> MinimaOf(const LeakDetector& detector) {
  std::vector<CycleMinima> all;
  const ChunkGrid& grid = detector.grid();
  for (const DeviceMinima& minima : detector.Minima()) {
    if (minima.least.empty()) continue;
    // The last one of a run that ended during its initialisation.
    const size_t first =
        std::min<size_t>(BurnInOf(grid.cycle()) / grid.cycles_per_chunk(), minima.least.size() - 1);
    CycleMinima& of = all.emplace_back();
    of.device = minima.device;
    of.first_bytes = Whole(minima.least[first]);
    of.first_cycle = first * grid.cycles_per_chunk() + 1;
    of.last_bytes = Whole(minima.least.back());
    of.bytes_per_cycle = minima.bytes_per_cycle.slope;
    of.low_bytes_per_cycle = minima.bytes_per_cycle.low;
    of.high_bytes_per_cycle = minima.bytes_per_cycle.high;
    for (const double least : minima.least) of.values.push_back(Whole(least));
    of.cycles_per_value = grid.cycles_per_chunk();
  }
  return all;
}

std::vector<PoolGrowth> PoolsThatGrew(const LeakDetector& detector,
                                      const std::map<int32_t, SiteHistory>& segments) {
  std::vector<PoolGrowth> pools;
  const ChunkGrid& grid = detector.grid();
  const size_t burn_in = BurnInOf(grid.cycle()) / grid.cycles_per_chunk();
  const std::vector<DeviceMinima> held = detector.Minima();
  for (const auto& [device, history] : segments) {
    const std::vector<double> reserved = history.SeriesOn(grid).least;
    if (reserved.size() <= burn_in) continue;
    const double grown = reserved.back() - reserved[burn_in];
    if (grown <= kPoolGrowth * reserved[burn_in]) continue;
    for (const DeviceMinima& minima : held) {
      if (minima.device == device && minima.bytes_per_cycle.low <= 0)
        pools.push_back({device, Whole(grown)});
    }
  }
  return pools;
}

void LeakEvidence::Select(int32_t device) {
  std::erase_if(grown, [&](const SiteGrowth& site) { return site.key.device != device; });
  std::erase_if(loop, [&](const SiteKey& key) { return key.device != device; });
  std::erase_if(minima, [&](const CycleMinima& of) { return of.device != device; });
  std::erase_if(untracked, [&](const UntrackedGrowth& of) { return of.device != device; });
  std::erase_if(pools, [&](const PoolGrowth& of) { return of.device != device; });
  std::erase_if(before, [&](const HeldBefore& of) { return of.device != device; });
}

LeakEvidence CollectEvidence(const Examination& examination, const LeakOptions& options) {
  const LeakCycles cycles = CyclesForLeaks(examination, options.window);
  LeakEvidence evidence;
  evidence.cycles.count = cycles.cycles.size();
  evidence.cycles.source = cycles.source;
  evidence.cycles.inferred = cycles.inferred;
  evidence.cycles.clear = cycles.clear;
  const Trace& trace = examination.trace();
  evidence.heaps = trace.heaps;
  evidence.before = FindHeldBefore(trace);
  if (cycles.cycles.empty()) return evidence;
  evidence.cycles.period_ns = MedianPeriod(cycles.cycles);
  evidence.watched_ns = Saturated(cycles.cycles.front().begin_t_ns, cycles.cycles.back().end_t_ns);
  const LeakWalk walk = WatchCycles(trace, cycles.cycles, options.device);
  evidence.minima = MinimaOf(walk.detector);
  if (cycles.cycles.size() < kCyclesForGrowth) return evidence;
  evidence.grown = walk.detector.Evaluate();
  evidence.loop = walk.detector.SitesWith(cycles.cycles.size() / 2);
  if (evidence.loop.size() > kMaxLoopStacks) evidence.loop.resize(kMaxLoopStacks);
  evidence.untracked = FindUntracked(trace, cycles.cycles, walk.detector.grid());
  if (options.device) {
    std::erase_if(evidence.untracked,
                  [&](const UntrackedGrowth& of) { return of.device != *options.device; });
  }
  evidence.pools = PoolsThatGrew(walk.detector, walk.segments);
  const auto add_room = [&](int32_t device) {
    if (device == kHostDevice || evidence.rooms.contains(device)) return;
    const auto most = walk.recent_peaks.find(device);
    const auto room = RoomOn(trace, device, most != walk.recent_peaks.end() ? most->second : 0);
    if (room) evidence.rooms[device] = *room;
  };
  for (const SiteGrowth& site : evidence.grown) add_room(site.key.device);
  for (const UntrackedGrowth& growth : evidence.untracked) add_room(growth.device);
  return evidence;
}

}  // namespace gmt::analysis
