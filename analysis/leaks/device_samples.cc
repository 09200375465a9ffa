#include "analysis/leaks/device_samples.h"

#include <algorithm>
#include <utility>

#include "proto/gmt.pb.h"

namespace gmt::analysis {

uint32_t DeviceSamples::Read(const gmt::Sample& sample, int32_t device, Used* used) {
  const auto same = std::find_if(sources_.begin(), sources_.end(), [&](const Source& of) {
    return of.device == device && of.name == sample.source();
  });
  Source& source = same != sources_.end() ? *same : sources_.emplace_back();
  source.device = device;
  source.name = sample.source();
  source.room.total = sample.total_bytes();
  source.of_process = false;
  *used = {sample.used_bytes(), sample.used_bytes()};
  for (const gmt::Sample::ProcessUse& process : sample.processes()) {
    if (process.pid() != pid_ || !process.has_bytes()) continue;
    used->bytes = process.bytes();
    source.of_process = true;
  }
  return static_cast<uint32_t>(&source - sources_.data());
}

void DeviceSamples::Count(uint32_t of, Used used, uint64_t recorded, const ChunkGrid& grid) {
  Source& source = sources_[of];
  source.room.outside = used.used - std::min(used.used, recorded);
  for (; source.level < grid.level(); ++source.level) {
    std::map<uint32_t, double> merged;
    for (const auto& [chunk, least] : source.least) {
      const auto [known, is_new] = merged.try_emplace(chunk / 2, least);
      if (!is_new) known->second = std::min(known->second, least);
    }
    source.least = std::move(merged);
  }
  const double value = static_cast<double>(used.bytes) - static_cast<double>(recorded);
  const auto [known, is_new] = source.least.try_emplace(grid.ChunkOf(grid.cycle()), value);
  if (!is_new) known->second = std::min(known->second, value);
}

void DeviceSamples::BeginAnew() {
  for (Source& source : sources_) {
    source.least.clear();
    source.level = 0;
  }
}

std::vector<UntrackedGrowth> DeviceSamples::Grown(const ChunkGrid& grid) const {
  std::vector<UntrackedGrowth> all;
  const uint64_t cycles = uint64_t{grid.complete()} << grid.level();
  if (cycles == 0) return all;
  for (const Source& source : sources_) {
    UntrackedParts parts;
    for (const auto& [chunk, least] : source.least) {
      const uint64_t cycle = uint64_t{chunk} << source.level;
      if (cycle >= cycles) break;
      const auto [known, is_new] = parts.try_emplace(cycle * kUntrackedParts / cycles, least);
      if (!is_new) known->second = std::min(known->second, least);
    }
    std::optional<UntrackedGrowth> growth = UntrackedGrowthOf(parts, cycles);
    if (!growth) continue;
    growth->device = source.device;
    growth->source = source.name;
    growth->of_process = source.of_process;
    all.push_back(std::move(*growth));
  }
  std::sort(all.begin(), all.end(), [](const UntrackedGrowth& a, const UntrackedGrowth& b) {
    return std::pair(a.device, a.source) < std::pair(b.device, b.source);
  });
  return all;
}

std::map<int32_t, DeviceSamples::Room> DeviceSamples::Rooms() const {
  std::map<int32_t, const Source*> last;
  for (const Source& source : sources_) {
    if (source.room.total == 0) continue;
    const Source*& of = last[source.device];
    if (of == nullptr || of->name < source.name) of = &source;
  }
  std::map<int32_t, Room> rooms;
  for (const auto& [device, source] : last) rooms[device] = source->room;
  return rooms;
}

}  // namespace gmt::analysis
