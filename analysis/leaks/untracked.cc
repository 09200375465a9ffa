#include "analysis/leaks/untracked.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "analysis/leaks/site_verdict.h"

namespace gmt::analysis {
namespace {

constexpr size_t kParts = 40;     // number of parts into which cycles are divided
constexpr size_t kMinParts = 12;  // with samples, after burn-in
constexpr double kRisingSamples = 0.35, kFallingBytes = 0.2, kLaterBytes = 0.4;
constexpr double kMinBytes = 4 << 20;  // bytes: drivers allocate in units of 2 MiB

bool IsOnDevice(const Rows& rows, RowId row) {
  return rows.heap[row] == kDriverHeap && rows.device[row] != kHostDevice &&
         rows.memory[row] != MANAGED && rows.memory[row] != IPC && rows.memory[row] != EXTERNAL &&
         rows.memory[row] != GRAPHICS;
}

class Watcher {
 public:
  Watcher(const Trace& trace, const std::vector<Cycle>& cycles, const ChunkGrid& grid)
      : trace_(trace), cycles_(cycles), grid_(grid) {}

  std::vector<UntrackedGrowth> Find() && {
    if (trace_.samples.empty()) return {};
    Collect();
    std::vector<UntrackedGrowth> found;
    for (const auto& [of, chunks] : unrecorded_) {
      std::optional<UntrackedGrowth> growth = UntrackedGrowthOf(chunks, grid_);
      if (!growth) continue;
      growth->device = of.first;
      growth->source = of.second;
      growth->of_process = by_process_[of];
      found.push_back(std::move(*growth));
    }
    return found;
  }

 private:
  using Of = std::pair<int32_t, std::string>;  // device, source

  // A sample during an allocation is too high or too low by its size; the minimum of many is not.
  void Collect() {
    const Rows& rows = trace_.rows;
    std::map<int32_t, uint64_t> recorded;
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.birth[row] == 0 && IsOnDevice(rows, row))
        recorded[rows.device[row]] += rows.size[row];
    }
    Step step = 0;
    uint32_t cycle = 0;
    for (const DeviceSample& sample : trace_.samples) {
      for (; step < std::min(sample.step, trace_.last_step()); ++step) {
        const StepRecord record = trace_.steps[step];
        if (record.row == kNoRow || !IsOnDevice(rows, record.row)) continue;
        uint64_t& bytes = recorded[rows.device[record.row]];
        bytes += record.is_death ? -rows.size[record.row] : rows.size[record.row];
      }
      while (cycle < cycles_.size() && cycles_[cycle].end_t_ns < sample.t_ns) ++cycle;
      if (cycle == cycles_.size()) break;
      const Of of{sample.device, sample.source};
      const double value = static_cast<double>(sample.process_bytes.value_or(sample.used_bytes)) -
                           static_cast<double>(recorded[sample.device]);
      by_process_[of] = sample.process_bytes.has_value();
      const auto [known, is_new] = unrecorded_[of].try_emplace(grid_.ChunkOf(cycle), value);
      if (!is_new) known->second = std::min(known->second, value);
    }
  }

  const Trace& trace_;
  const std::vector<Cycle>& cycles_;
  const ChunkGrid& grid_;
  std::map<Of, UntrackedChunks> unrecorded_;
  std::map<Of, bool> by_process_;
};

}  // namespace

std::optional<UntrackedGrowth> UntrackedGrowthOf(const UntrackedChunks& chunks,
                                                 const ChunkGrid& grid) {
  const size_t cycles = size_t{grid.complete()} * grid.cycles_per_chunk();
  if (cycles == 0) return std::nullopt;
  std::map<size_t, double> parts;
  for (const auto& [chunk, least] : chunks) {
    if (chunk >= grid.complete()) break;
    const auto [known, is_new] = parts.try_emplace(chunk * kParts / grid.complete(), least);
    if (!is_new) known->second = std::min(known->second, least);
  }
  const double cycles_per_part = static_cast<double>(cycles) / kParts;
  const auto burn_in =
      static_cast<size_t>(std::ceil(BurnInOf(static_cast<uint32_t>(cycles)) / cycles_per_part));
  std::vector<double> late;
  for (const auto& [part, value] : parts) {
    if (part >= burn_in) late.push_back(value);
  }
  if (late.size() < kMinParts) return std::nullopt;
  const Rises rises = RisesOf(late);
  const double grown = late.back() - late.front();
  const double later = late.back() - late[late.size() / 2];
  if (grown < kMinBytes || rises.down > kFallingBytes * rises.up ||
      rises.rising < kRisingSamples * rises.pairs || later < kLaterBytes * (grown - later))
    return std::nullopt;
  // Parts without a sample are omitted, so an index corresponds to slightly more than one part.
  const double parts_per_index =
      static_cast<double>(parts.rbegin()->first - burn_in) / static_cast<double>(late.size() - 1);
  const double cycles_per_index = cycles_per_part * std::max(parts_per_index, 1e-9);
  const Trend trend = TheilSen(late);
  if (trend.low <= 0) return std::nullopt;
  UntrackedGrowth growth;
  growth.bytes_per_cycle = {trend.slope / cycles_per_index, trend.low / cycles_per_index,
                            trend.high / cycles_per_index};
  const double least = parts.begin()->second;
  size_t since = parts.begin()->first;
  for (const auto& [part, value] : parts) {
    if (value > least + 0.02 * (late.back() - least)) break;
    since = part;
  }
  growth.bytes = Whole(late.back() - least);
  growth.since_cycle = Whole(static_cast<double>(since) * cycles_per_part);
  return growth;
}

std::vector<UntrackedGrowth> FindUntracked(const Trace& trace, const std::vector<Cycle>& cycles,
                                           const ChunkGrid& grid) {
  return Watcher(trace, cycles, grid).Find();
}

}  // namespace gmt::analysis
