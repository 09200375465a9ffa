#include "analysis/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/ledger/driver_reading.h"
#include "analysis/ledger/process_rows.h"

namespace gmt::analysis {
namespace {

constexpr const char* kLess = "driver less events";

void AddRow(LedgerGroup group, std::string name, uint64_t bytes, std::string known_by,
            std::string detail, std::vector<LedgerRow>& rows) {
  LedgerRow row;
  row.name = std::move(name);
  row.bytes = bytes;
  row.group = group;
  row.known_by = std::move(known_by);
  row.detail = std::move(detail);
  rows.push_back(std::move(row));
}

void AddCupti(uint64_t bytes, std::vector<LedgerRow>& rows) {
  if (bytes == 0) return;
  AddRow(LedgerGroup::kOutsideFramework, "CUPTI", bytes, "its settings", "because of --cupti full",
         rows);
}

// "1 context, 12 modules".
std::string StandingDetail(const Trace& trace, const DeviceSample& sample) {
  uint64_t modules = 0, contexts = 0;
  for (const OutsideNote& note : trace.outside) {
    if (!note.IsBy(sample.step, sample.t_ns)) break;
    if (note.device && *note.device != sample.device) continue;
    if (note.kind == OutsideNote::kModuleLoaded) ++modules;
    if (note.kind == OutsideNote::kModuleUnloaded && modules > 0) --modules;
    if (note.kind == OutsideNote::kContextMade) ++contexts;
    if (note.kind == OutsideNote::kContextEnded && contexts > 0) --contexts;
  }
  std::vector<std::string> parts;
  if (contexts > 0)
    parts.push_back(absl::StrCat(contexts, contexts == 1 ? " context" : " contexts"));
  if (modules > 0) parts.push_back(absl::StrCat(modules, modules == 1 ? " module" : " modules"));
  return absl::StrJoin(parts, ", ");
}

// Adds the memory other than allocations: this process's, or that of all processes if the source
// does not distinguish them.
void AddStanding(const Trace& trace, const DriverReading& reading, std::vector<LedgerRow>& rows) {
  if (reading.standing_bytes == 0) return;
  const DeviceSample& sample = reading.sample;
  if (sample.process_bytes) {
    AddRow(LedgerGroup::kOutsideFramework, "contexts and modules", reading.standing_bytes, kLess,
           StandingDetail(trace, sample), rows);
    return;
  }
  AddRow(LedgerGroup::kNotApart, "contexts and others", reading.standing_bytes, kLess,
         absl::StrCat("contexts, modules, other processes: ", sample.source,
                      sample.processes.empty() ? " counts them together"
                                               : " lists this process under no known pid"),
         rows);
}

void AddProcesses(const Trace& trace, const DeviceSample& sample, std::vector<LedgerRow>& rows) {
  if (!sample.process_bytes) return;
  for (const DeviceSample::Process& process : sample.processes) {
    if (process.pid == trace.pid) continue;
    AddRow(LedgerGroup::kOtherProcess, absl::StrCat("process ", process.pid),
           process.bytes.value_or(0), sample.source,
           process.bytes ? process.name
                         : absl::StrCat(process.name, process.name.empty() ? "" : ": ",
                                        sample.source, " does not report how much"),
           rows);
  }
}

void Sort(std::vector<LedgerRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const LedgerRow& a, const LedgerRow& b) {
    if (a.group != b.group) return a.group < b.group;
    return a.group != LedgerGroup::kReserved && a.bytes > b.bytes;
  });
}

uint64_t SumOf(const std::vector<LedgerRow>& rows) {
  uint64_t sum = 0;
  for (const LedgerRow& row : rows) sum += row.bytes;
  return sum;
}

// Returns `bytes` + `change`, at least 0.
uint64_t Moved(uint64_t bytes, int64_t change) {
  if (change >= 0) return bytes + static_cast<uint64_t>(change);
  const uint64_t less = 0 - static_cast<uint64_t>(change);
  return bytes - std::min(bytes, less);
}

void AddReading(const Trace& trace, const DriverReading& reading, uint64_t recorded_bytes,
                Ledger& ledger) {
  const DeviceSample& sample = reading.sample;
  ledger.source = sample.source.empty() ? "the driver" : sample.source;
  if (sample.total_bytes > 0) ledger.total_bytes = sample.total_bytes;
  ledger.reading_t_ns = sample.t_ns;
  ledger.reading_used_bytes = sample.used_bytes;
  ledger.recorded_since = static_cast<int64_t>(recorded_bytes - reading.recorded_bytes);
  ledger.driver_used_bytes = Moved(sample.used_bytes, ledger.recorded_since);
  AddStanding(trace, reading, ledger.rows);
  if (sample.process_bytes) {
    ledger.reported_process_bytes = Moved(*sample.process_bytes, ledger.recorded_since);
    ledger.unexplained_in_process =
        static_cast<int64_t>(*ledger.reported_process_bytes - ledger.process_bytes());
  }
  AddProcesses(trace, sample, ledger.rows);
  if (sample.reserved_bytes.value_or(0) > 0) {
    AddRow(LedgerGroup::kSystem, "driver and firmware", *sample.reserved_bytes, ledger.source, "",
           ledger.rows);
  }
}

}  // namespace

std::string_view NameOf(LedgerGroup group) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "reserved", "outside_framework", "not_apart", "other_process", "system"};
  return kNames[static_cast<size_t>(group)];
}

Ledger LedgerAt(const Examination& examination, int32_t device, const Instant& at) {
  const Trace& trace = examination.trace();
  Ledger ledger;
  ledger.device = device;
  ledger.at = at;
  for (const GpuFacts& known : trace.devices) {
    const bool is_it = static_cast<int32_t>(known.index) == device;
    if (is_it && known.total_bytes > 0) ledger.total_bytes = known.total_bytes;
  }
  ProcessRows process = ProcessRowsAfter(examination, device, at.step);
  ledger.rows = std::move(process.rows);
  ledger.not_counted = std::move(process.not_counted);
  AddCupti(CuptiBytesAt(trace, device, at.step, at.t_ns), ledger.rows);
  const std::optional<DriverReading> reading = ReadingNear(examination, device, at);
  if (reading) AddReading(trace, *reading, process.recorded_bytes, ledger);
  Sort(ledger.rows);
  const uint64_t sum = SumOf(ledger.rows);
  if (!reading) ledger.driver_used_bytes = sum;
  ledger.unexplained_bytes = static_cast<int64_t>(ledger.driver_used_bytes - sum);
  return ledger;
}

Ledger LedgerAfter(const Examination& examination, int32_t device, Step step) {
  return LedgerAt(examination, device,
                  {step, examination.trace().TimeOf(step), absl::StrCat("event:", step)});
}

absl::StatusOr<std::vector<Ledger>> MakeLedgers(const Examination& examination,
                                                const LedgerOptions& options) {
  if (options.device) {
    if (absl::Status status = examination.CheckGpu(*options.device); !status.ok()) return status;
  }
  std::vector<Ledger> ledgers;
  for (const int32_t device : examination.Gpus()) {
    if (options.device && device != *options.device) continue;
    const auto at = InstantOn(examination, options.at, device, PeakOf::kHeld);
    if (!at.ok()) return at.status();
    ledgers.push_back(LedgerAt(examination, device, *at));
  }
  return ledgers;
}

}  // namespace gmt::analysis
