#include "analysis/leaks/leak_state.h"

#include <algorithm>
#include <cmath>

#include "proto/leaks.pb.h"

namespace gmt::analysis {
namespace {

void Set(const Trend& trend, gmt::LeakTrend* message) {
  message->set_slope(trend.slope);
  message->set_low(trend.low);
  message->set_high(trend.high);
}
// NaN would pass every comparison.
double Finite(double value) { return std::isfinite(value) ? value : 0; }
Trend TrendOf(const gmt::LeakTrend& message) {
  return {Finite(message.slope()), Finite(message.low()), Finite(message.high())};
}

gmt::LeakSite MessageOf(const SiteGrowth& site) {
  gmt::LeakSite message;
  message.set_device(site.key.device);
  message.set_heap(site.key.heap);
  message.set_stack(site.key.stack);
  message.set_forward_stack(site.key.forward_stack);
  message.set_size_class(site.key.size_class);
  message.set_growth(static_cast<uint32_t>(site.verdict.growth));
  message.set_certain(site.verdict.certain);
  Set(site.verdict.bytes_per_cycle, message.mutable_bytes_per_cycle());
  message.set_onset(site.verdict.onset);
  message.set_end(site.verdict.end);
  message.set_bytes(site.verdict.bytes);
  message.set_count(site.verdict.count);
  message.set_lifetime(site.verdict.lifetime);
  message.set_late_events(site.verdict.late_events);
  for (const double survivors : site.verdict.survivors) message.add_survivors(survivors);
  message.set_births(site.births);
  message.set_live_count(site.live_count);
  message.set_min_size(site.min_size);
  message.set_max_size(site.max_size);
  message.set_new_maxima(site.new_maxima);
  message.set_awaiting_bytes(site.awaiting_bytes);
  return message;
}

SiteGrowth SiteOf(const gmt::LeakSite& message) {
  SiteGrowth site;
  site.key = {message.device(), message.heap(), message.stack(), message.forward_stack(),
              message.size_class()};
  const uint32_t growth = std::min(message.growth(), static_cast<uint32_t>(Growth::kBursts));
  site.verdict.growth = static_cast<Growth>(growth);
  site.verdict.certain = message.certain();
  site.verdict.bytes_per_cycle = TrendOf(message.bytes_per_cycle());
  site.verdict.onset = Finite(message.onset());
  site.verdict.end = Finite(message.end());
  site.verdict.bytes = message.bytes();
  site.verdict.count = message.count();
  site.verdict.lifetime = message.lifetime();
  site.verdict.late_events = Finite(message.late_events());
  for (const double survivors : message.survivors())
    site.verdict.survivors.push_back(Finite(survivors));
  site.births = message.births();
  site.live_count = message.live_count();
  site.min_size = message.min_size();
  site.max_size = message.max_size();
  site.new_maxima = message.new_maxima();
  site.awaiting_bytes = message.awaiting_bytes();
  return site;
}

}  // namespace

gmt::LeakCycleInfo InfoOf(const WatchedCycles& cycles, int64_t watched_ns) {
  gmt::LeakCycleInfo info;
  info.set_count(cycles.count);
  info.set_source(cycles.source);
  info.set_inferred(cycles.inferred);
  info.set_clear(cycles.clear);
  info.set_period_ns(cycles.period_ns);
  info.set_watched_ns(watched_ns);
  return info;
}

gmt::LeakMinima MessageOf(const CycleMinima& minima) {
  gmt::LeakMinima message;
  message.set_device(minima.device);
  message.set_first_bytes(minima.first_bytes);
  message.set_last_bytes(minima.last_bytes);
  message.set_first_cycle(minima.first_cycle);
  Set({minima.bytes_per_cycle, minima.low_bytes_per_cycle, minima.high_bytes_per_cycle},
      message.mutable_bytes_per_cycle());
  return message;
}

gmt::LeakBefore MessageOf(const HeldBefore& before) {
  gmt::LeakBefore message;
  message.set_device(before.device);
  message.set_heap(before.heap);
  message.set_bytes(before.bytes);
  message.set_blocks(before.blocks);
  message.set_freed_bytes(before.freed_bytes);
  message.set_freed_blocks(before.freed_blocks);
  message.set_unknown_freed_bytes(before.unknown_freed_bytes);
  message.set_unknown_freed_blocks(before.unknown_freed_blocks);
  return message;
}

gmt::LeakState StateOf(const LeakEvidence& evidence) {
  gmt::LeakState state;
  state.set_version(kLeakStateVersion);
  *state.mutable_cycles() = InfoOf(evidence.cycles, evidence.watched_ns);
  for (const std::string& heap : evidence.heaps) state.add_heaps(heap);
  for (const SiteGrowth& site : evidence.grown) *state.add_grown() = MessageOf(site);
  for (const SiteKey& key : evidence.loop) {
    state.add_loop_device(key.device);
    state.add_loop_heap(key.heap);
    state.add_loop_stack(key.stack);
    state.add_loop_forward_stack(key.forward_stack);
  }
  for (const CycleMinima& minima : evidence.minima) *state.add_minima() = MessageOf(minima);
  for (const UntrackedGrowth& growth : evidence.untracked) {
    gmt::LeakUntracked* message = state.add_untracked();
    message->set_device(growth.device);
    message->set_source(growth.source);
    message->set_of_process(growth.of_process);
    Set(growth.bytes_per_cycle, message->mutable_bytes_per_cycle());
    message->set_bytes(growth.bytes);
    message->set_since_cycle(growth.since_cycle);
  }
  for (const PoolGrowth& pool : evidence.pools) {
    gmt::LeakPool* message = state.add_pools();
    message->set_device(pool.device);
    message->set_grown_bytes(pool.bytes);
  }
  for (const auto& [device, bytes] : evidence.rooms) {
    gmt::LeakRoom* message = state.add_rooms();
    message->set_device(device);
    message->set_bytes(bytes);
  }
  for (const HeldBefore& before : evidence.before) *state.add_before() = MessageOf(before);
  return state;
}

std::optional<LeakEvidence> EvidenceOf(const gmt::LeakState& state) {
  if (state.version() != kLeakStateVersion) return std::nullopt;
  LeakEvidence evidence;
  const gmt::LeakCycleInfo& cycles = state.cycles();
  evidence.cycles = {cycles.count(), cycles.source(), cycles.period_ns(), cycles.inferred(),
                     cycles.clear()};
  evidence.watched_ns = cycles.watched_ns();
  evidence.heaps.clear();
  for (const std::string& heap : state.heaps()) evidence.heaps.push_back(heap);
  if (evidence.heaps.size() < 2) evidence.heaps = {"driver", "host"};
  for (const gmt::LeakSite& site : state.grown()) evidence.grown.push_back(SiteOf(site));
  const int loop =
      std::min({state.loop_device_size(), state.loop_heap_size(), state.loop_stack_size(),
                state.loop_forward_stack_size(), static_cast<int>(kMaxLoopStacks)});
  for (int i = 0; i < loop; ++i) {
    evidence.loop.push_back({state.loop_device(i), state.loop_heap(i), state.loop_stack(i),
                             state.loop_forward_stack(i), 0});
  }
  for (const gmt::LeakMinima& of : state.minima()) {
    const Trend trend = TrendOf(of.bytes_per_cycle());
    evidence.minima.push_back({of.device(),
                               of.first_bytes(),
                               of.last_bytes(),
                               of.first_cycle(),
                               trend.slope,
                               trend.low,
                               trend.high,
                               {},
                               1});
  }
  for (const gmt::LeakUntracked& of : state.untracked()) {
    evidence.untracked.push_back({of.device(), of.source(), of.of_process(),
                                  TrendOf(of.bytes_per_cycle()), of.bytes(), of.since_cycle()});
  }
  for (const gmt::LeakPool& of : state.pools())
    evidence.pools.push_back({of.device(), of.grown_bytes()});
  for (const gmt::LeakRoom& of : state.rooms()) evidence.rooms[of.device()] = of.bytes();
  for (const gmt::LeakBefore& of : state.before()) {
    evidence.before.push_back({of.device(), of.heap(), of.bytes(), of.blocks(), of.freed_bytes(),
                               of.freed_blocks(), of.unknown_freed_bytes(),
                               of.unknown_freed_blocks()});
  }
  return evidence;
}

}  // namespace gmt::analysis
