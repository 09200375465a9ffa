#include "analysis/leaks/leak_outlook.h"

#include <algorithm>
#include <cmath>

#include "analysis/trace/device_use.h"

namespace gmt::analysis {
namespace {

constexpr double kLongest_ns = 3e17;  // about ten years

std::optional<int64_t> TimeFor(uint64_t room, double bytes_per_cycle, int64_t period_ns) {
  if (bytes_per_cycle <= 0 || period_ns <= 0) return std::nullopt;
  const double time = static_cast<double>(room) / bytes_per_cycle * static_cast<double>(period_ns);
  if (time > kLongest_ns) return std::nullopt;
  return static_cast<int64_t>(time);
}

}  // namespace

std::optional<uint64_t> RoomOn(const Trace& trace, int32_t device, uint64_t most_held) {
  uint64_t total = 0, outside = 0;
  for (const GpuFacts& of : trace.devices) {
    if (static_cast<int32_t>(of.index) == device) total = of.total_bytes;
  }
  for (const DeviceUse& use : FindDeviceUse(trace)) {
    if (use.device != device || use.last.total_bytes == 0) continue;
    total = use.last.total_bytes;
    outside = use.last.used_bytes - std::min(use.last.used_bytes, use.last.recorded_bytes);
  }
  if (total == 0) return std::nullopt;
  const uint64_t taken = std::min(total, outside);
  return total - taken - std::min(total - taken, most_held);
}

void SetOutlook(uint64_t room, int64_t period_ns, LeakSuspect& suspect) {
  suspect.eta_ns = TimeFor(room, suspect.bytes_per_cycle, period_ns);
  suspect.low_eta_ns = TimeFor(room, suspect.high_bytes_per_cycle, period_ns);
  suspect.high_eta_ns = TimeFor(room, suspect.low_bytes_per_cycle, period_ns);
}

}  // namespace gmt::analysis
