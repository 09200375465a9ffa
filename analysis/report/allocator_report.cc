#include "analysis/report/allocator_report.h"

namespace gmt::analysis {

AllocatorReport MakeAllocatorReport(const Examination& examination,
                                    const std::map<int32_t, Step>& instants, const Window& window) {
  AllocatorReport out;
  const Trace& trace = examination.trace();
  for (const auto& [device, step] : instants) {
    if (device == kHostDevice) continue;
    DeviceAllocator allocator;
    allocator.device = device;
    allocator.pools = PoolsAfter(trace, device, step);
    for (const AllocatorAction& action : examination.allocator_actions()) {
      const bool inside = action.t_ns >= window.from_ns && action.t_ns <= window.to_ns;
      if (action.device == device && inside) allocator.actions.push_back(action);
    }
    if (!allocator.pools.empty() || !allocator.actions.empty()) {
      out.devices.push_back(std::move(allocator));
    }
  }
  out.cycles = examination.cycles();
  std::erase_if(out.cycles.devices, [&](const DeviceCycles& device) {
    return device.cycles.empty() || !instants.contains(device.device);
  });
  for (const Reconciliation& found : trace.reconciliations) {
    if (instants.contains(found.device)) out.reconciliations.push_back(found);
  }
  return out;
}

}  // namespace gmt::analysis
