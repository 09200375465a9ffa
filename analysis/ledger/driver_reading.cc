#include "analysis/ledger/driver_reading.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/trace/device_use.h"

namespace gmt::analysis {
namespace {

constexpr std::string_view kNvml = "nvml";
constexpr size_t kStandingReadings = 3;
constexpr size_t kWarmUpCycles = 2;
// Local memory is reserved for every thread that the device can run at once: at most 2,048 on each
// of its multiprocessors. No device so far has more than this.
constexpr uint64_t kMaxThreads = 2048 * 160;

bool IsOn(const OutsideNote& note, int32_t device) {
  return !note.device || *note.device == device;
}

uint64_t TotalOf(const Trace& trace, int32_t device) {
  for (const GpuFacts& known : trace.devices) {
    if (static_cast<int32_t>(known.index) == device) return known.total_bytes;
  }
  return 0;
}

// Returns false if the sample does not show how much is used.
bool Complete(const Trace& trace, DeviceSample& sample) {
  if (sample.total_bytes == 0) sample.total_bytes = TotalOf(trace, sample.device);
  if (sample.used_bytes > 0 || !sample.free_bytes) return sample.used_bytes > 0;
  if (sample.total_bytes < *sample.free_bytes || sample.total_bytes == 0) return false;
  sample.used_bytes = sample.total_bytes - *sample.free_bytes;
  return true;
}

// Returns the readings of one source on one device, in order.
std::vector<DriverReading> Readings(const Trace& trace, int32_t device) {
  const bool has_nvml =
      std::any_of(trace.samples.begin(), trace.samples.end(), [&](const DeviceSample& sample) {
        return sample.device == device && sample.source == kNvml;
      });
  const std::vector<uint64_t> recorded = RecordedAtSamples(trace);
  std::vector<DriverReading> readings;
  std::string source;
  for (size_t i = 0; i < trace.samples.size(); ++i) {
    if (trace.samples[i].device != device) continue;
    if (has_nvml && trace.samples[i].source != kNvml) continue;
    DriverReading reading;
    reading.sample = trace.samples[i];
    if (!Complete(trace, reading.sample)) continue;
    if (readings.empty()) source = reading.sample.source;
    if (reading.sample.source != source) continue;
    reading.recorded_bytes = recorded[i];
    readings.push_back(std::move(reading));
  }
  return readings;
}

// Unrecorded bytes of the process if the sample has them; otherwise of all used memory except the
// system's.
int64_t Unrecorded(const DriverReading& reading) {
  const DeviceSample& sample = reading.sample;
  const uint64_t reported =
      sample.process_bytes
          ? *sample.process_bytes
          : sample.used_bytes - std::min(sample.used_bytes, sample.reserved_bytes.value_or(0));
  return static_cast<int64_t>(reported - reading.recorded_bytes - reading.cupti_bytes);
}

uint64_t LimitCost(const OutsideNote& note) {
  if (note.name == "malloc_heap_size" || note.name == "printf_fifo_size") return note.bytes;
  if (note.name == "stack_size" && note.bytes <= UINT64_MAX / kMaxThreads) {
    return note.bytes * kMaxThreads;
  }
  return 0;
}

// The standing memory at a sample that the recording explains: contexts, each taking
// `context_bytes`, code and limits. The sum may wrap; only differences are meaningful.
uint64_t ExplainedAt(const Trace& trace, const DeviceSample& sample, uint64_t context_bytes) {
  uint64_t bytes = 0;
  for (const OutsideNote& note : trace.outside) {
    if (!note.IsBy(sample.step, sample.t_ns)) break;
    if (!IsOn(note, sample.device)) continue;
    switch (note.kind) {
      case OutsideNote::kContextMade:
        bytes += context_bytes;
        break;
      case OutsideNote::kModuleLoaded:
        bytes += note.bytes;
        break;
      case OutsideNote::kLimitSet:
        bytes += LimitCost(note);
        break;
      default:
        break;
    }
  }
  return bytes;
}

size_t FirstWarm(const Examination& examination, const std::vector<DriverReading>& readings) {
  const std::vector<Cycle>& cycles = examination.cycles().cycles;
  if (cycles.size() <= kWarmUpCycles) return 0;
  const int64_t warm_t_ns = cycles[kWarmUpCycles - 1].end_t_ns;
  const auto warm =
      std::find_if(readings.begin(), readings.end(),
                   [&](const DriverReading& reading) { return reading.sample.t_ns >= warm_t_ns; });
  const size_t last = readings.size() - std::min(readings.size(), kStandingReadings);
  return std::min(static_cast<size_t>(warm - readings.begin()), last);
}

// Returns the standing bytes at `reading`: those after warm-up, plus what was added since and is
// explained by the recording.
uint64_t StandingAt(const Examination& examination, const std::vector<DriverReading>& readings,
                    const DriverReading& reading) {
  const size_t first = FirstWarm(examination, readings);
  const size_t count = std::min(kStandingReadings, readings.size() - first);
  std::vector<std::pair<int64_t, size_t>> standing;
  for (size_t i = first; i < first + count; ++i) standing.emplace_back(Unrecorded(readings[i]), i);
  std::sort(standing.begin(), standing.end());
  const auto [bytes, index] = standing[count / 2];
  const uint64_t base = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  const Trace& trace = examination.trace();
  const uint64_t before = ExplainedAt(trace, readings[index].sample, base);
  const uint64_t now = ExplainedAt(trace, reading.sample, base);
  return base + (now > before ? now - before : 0);
}

uint64_t ContextsAt(const Trace& trace, int32_t device, Step step, int64_t t_ns) {
  uint64_t made = 0, held = 0;
  for (const OutsideNote& note : trace.outside) {
    if (!note.IsBy(step, t_ns)) break;
    if (!note.device || *note.device != device) continue;
    if (note.kind == OutsideNote::kContextMade) ++made, ++held;
    if (note.kind == OutsideNote::kContextEnded && held > 0) --held;
  }
  return made == 0 ? 1 : held;
}

}  // namespace

uint64_t CuptiBytesAt(const Trace& trace, int32_t device, Step step, int64_t t_ns) {
  uint64_t each = 0;
  for (const OutsideNote& note : trace.outside) {
    if (!note.IsBy(step, t_ns)) break;
    if (note.kind == OutsideNote::kCuptiMemory && IsOn(note, device)) each = note.bytes;
  }
  return each == 0 ? 0 : each * ContextsAt(trace, device, step, t_ns);
}

std::optional<DriverReading> ReadingNear(const Examination& examination, int32_t device,
                                         const Instant& at) {
  const Trace& trace = examination.trace();
  std::vector<DriverReading> readings = Readings(trace, device);
  if (readings.empty()) return std::nullopt;
  const bool has_cupti =
      std::any_of(trace.outside.begin(), trace.outside.end(),
                  [](const OutsideNote& note) { return note.kind == OutsideNote::kCuptiMemory; });
  for (DriverReading& reading : readings) {
    if (!has_cupti) break;
    reading.cupti_bytes = CuptiBytesAt(trace, device, reading.sample.step, reading.sample.t_ns);
  }
  const auto distance = [&](const DriverReading& reading) {
    const int64_t t_ns = reading.sample.t_ns;
    return t_ns > at.t_ns ? static_cast<uint64_t>(t_ns) - static_cast<uint64_t>(at.t_ns)
                          : static_cast<uint64_t>(at.t_ns) - static_cast<uint64_t>(t_ns);
  };
  DriverReading nearest = *std::min_element(
      readings.begin(), readings.end(), [&](const DriverReading& a, const DriverReading& b) {
        if (distance(a) != distance(b)) return distance(a) < distance(b);
        return a.sample.process_bytes.has_value() > b.sample.process_bytes.has_value();
      });
  // Readings that distinguish the process and those that do not measure different quantities.
  std::erase_if(readings, [&](const DriverReading& reading) {
    return reading.sample.process_bytes.has_value() != nearest.sample.process_bytes.has_value();
  });
  nearest.unrecorded_bytes = static_cast<uint64_t>(std::max<int64_t>(Unrecorded(nearest), 0));
  nearest.standing_bytes =
      std::min(nearest.unrecorded_bytes, StandingAt(examination, readings, nearest));
  return nearest;
}

}  // namespace gmt::analysis
