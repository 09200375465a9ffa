#include "analysis/trace/device_use.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

bool IsInDriverFigure(const Rows& rows, RowId row) {
  if (rows.device[row] == kHostDevice) return false;
  if (rows.heap[row] != kDriverHeap) return (rows.flags[row] & kRowUnbacked) != 0;
  switch (rows.memory[row]) {
    case MANAGED:
    case IPC:
    case EXTERNAL:
    case GRAPHICS:
      return false;
    default:
      return true;
  }
}

std::vector<uint64_t> RecordedAtSamples(const Trace& trace) {
  std::vector<uint64_t> recorded_at;
  if (trace.samples.empty()) return recorded_at;
  const Rows& rows = trace.rows;
  absl::flat_hash_map<int32_t, uint64_t> recorded;  // by device, after `step`
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && IsInDriverFigure(rows, row)) {
      recorded[rows.device[row]] += rows.size[row];
    }
  }
  Step step = 0;
  for (const DeviceSample& sample : trace.samples) {
    for (; step < sample.step; ++step) {
      const StepRecord record = trace.steps[step];
      if (record.row == kNoRow || !IsInDriverFigure(rows, record.row)) continue;
      uint64_t& bytes = recorded[rows.device[record.row]];
      bytes += record.is_death ? -rows.size[record.row] : rows.size[record.row];
    }
    recorded_at.push_back(recorded[sample.device]);
  }
  return recorded_at;
}

std::vector<DeviceUse> FindDeviceUse(const Trace& trace) {
  const std::vector<uint64_t> recorded = RecordedAtSamples(trace);
  std::map<std::pair<int32_t, std::string>, DeviceUse> uses;
  for (size_t i = 0; i < trace.samples.size(); ++i) {
    const DeviceSample& sample = trace.samples[i];
    DeviceUse& use = uses[{sample.device, sample.source}];
    use.device = sample.device;
    use.source = sample.source;
    use.last = {sample.t_ns,       recorded[i],        sample.process_bytes,  sample.others_bytes,
                sample.used_bytes, sample.total_bytes, sample.reserved_bytes, sample.free_bytes};
    if (use.samples++ == 0 || use.last.used_bytes > use.fullest.used_bytes) use.fullest = use.last;
  }
  std::vector<DeviceUse> all;
  for (auto& [key, use] : uses) all.push_back(std::move(use));
  return all;
}

}  // namespace gmt::analysis
