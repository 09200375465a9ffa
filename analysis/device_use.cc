#include "analysis/device_use.h"

#include <map>
#include <utility>

namespace gmt::analysis {
namespace {

bool IsOnDevice(const Rows& rows, RowId row) {
  if (rows.heap[row] != kDriverHeap || rows.device[row] == kHostDevice) return false;
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

}  // namespace

std::vector<DeviceUse> FindDeviceUse(const Trace& trace) {
  const Rows& rows = trace.rows;
  std::map<int32_t, uint64_t> recorded;  // by device, after `step`
  Step step = 0;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && IsOnDevice(rows, row)) recorded[rows.device[row]] += rows.size[row];
  }
  std::map<std::pair<int32_t, std::string>, DeviceUse> uses;
  for (const DeviceSample& sample : trace.samples) {
    for (; step < sample.step; ++step) {
      const StepRecord record = trace.steps[step];
      if (record.row == kNoRow || !IsOnDevice(rows, record.row)) continue;
      uint64_t& bytes = recorded[rows.device[record.row]];
      bytes += record.is_death ? -rows.size[record.row] : rows.size[record.row];
    }
    DeviceUse& use = uses[{sample.device, sample.source}];
    use.device = sample.device;
    use.source = sample.source;
    use.last = {sample.t_ns,          recorded[sample.device], sample.process_bytes,
                sample.others_bytes,  sample.used_bytes,       sample.total_bytes,
                sample.reserved_bytes};
    if (use.samples++ == 0 || use.last.used_bytes > use.fullest.used_bytes) use.fullest = use.last;
  }
  std::vector<DeviceUse> all;
  for (auto& [key, use] : uses) all.push_back(std::move(use));
  return all;
}

}  // namespace gmt::analysis
