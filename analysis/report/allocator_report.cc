#include "analysis/report/allocator_report.h"

namespace gmt::analysis {
namespace {

constexpr size_t kFewestSteps = 3;

StepDriverCalls CountDriverCalls(const Trace& trace, const std::vector<Cycle>& cycles,
                                 int32_t device) {
  StepDriverCalls found;
  found.device = device;
  found.steps = cycles.size();
  size_t cycle = 0;
  for (const DriverCall& call : trace.driver_calls) {
    while (cycle < cycles.size() && cycles[cycle].end < call.step) ++cycle;
    if (cycle == cycles.size()) break;
    if (call.device != device || call.step <= cycles[cycle].begin) continue;
    ++found.calls;
    if (cycle > 0) {
      ++found.later_calls;
      found.later_duration_ns += call.duration_ns;
      if (found.last_step != cycle + 1) ++found.later_steps_with_calls;
    }
    found.last_step = cycle + 1;
  }
  return found;
}

}  // namespace

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
  if (out.cycles.cycles.size() >= kFewestSteps) {
    for (const DeviceAllocator& allocator : out.devices) {
      out.driver_calls.push_back(CountDriverCalls(trace, out.cycles.cycles, allocator.device));
    }
  }
  for (const Reconciliation& found : trace.reconciliations) {
    if (instants.contains(found.device)) out.reconciliations.push_back(found);
  }
  return out;
}

}  // namespace gmt::analysis
