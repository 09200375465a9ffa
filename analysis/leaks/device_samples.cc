#include "analysis/leaks/device_samples.h"

#include <algorithm>
#include <utility>

#include "proto/gmt.pb.h"

namespace gmt::analysis {

// Merges up to the grid's current level, which may have changed since the last sample.
void DeviceSamples::Source::MergeTo(uint32_t grid_level) {
  for (; level < grid_level; ++level) {
    UntrackedChunks merged;
    for (const auto& [chunk, value] : least) {
      const auto [known, is_new] = merged.try_emplace(chunk / 2, value);
      if (!is_new) known->second = std::min(known->second, value);
    }
    least = std::move(merged);
  }
}

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
  source.MergeTo(grid.level());
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
  for (Source source : sources_) {
    source.MergeTo(grid.level());
    std::optional<UntrackedGrowth> growth = UntrackedGrowthOf(source.least, grid);
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
