#include "collector/metrics/metrics_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "format/printable.h"
#include "proto/control.pb.h"
#include "proto/gmt.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::metrics {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

constexpr double kNsPerSecond = 1e9;

// Escapes backslash and quote as the text format requires, after control characters.
std::string Escaped(std::string_view text) {
  std::string result;
  for (const char c : format::Printable(text)) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

class Writer {
 public:
  explicit Writer(Dialect dialect) : dialect_(dialect) {}

  // The name of a counter must end in "_total".
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    std::string_view family = name;
    if (dialect_ == Dialect::kOpenMetrics && type == "counter") family.remove_suffix(6);
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, help, family, type);
  }
  template <typename T>
  void Value(const Labels& labels, T value) {
    text_ += name_;
    char separator = '{';
    for (const auto& [label, content] : labels) {
      if (content.empty()) continue;
      text_ += fmt::format("{}{}=\"{}\"", separator, label, Escaped(content));
      separator = ',';
    }
    if (separator == ',') text_ += '}';
    text_ += fmt::format(" {}\n", value);
  }
  template <typename T>
  void One(std::string_view name, std::string_view type, std::string_view help, T value) {
    Family(name, type, help);
    Value({}, value);
  }
  std::string Finish() {
    if (dialect_ == Dialect::kOpenMetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  const Dialect dialect_;
  std::string text_;
  std::string_view name_;
};

Labels DeviceLabels(const control::Status& status, const Identity& identity, uint32_t index) {
  Labels labels;
  for (const control::DeviceStatus& device : status.devices()) {
    if (device.index() != index) continue;
    const uint32_t physical = device.has_physical_index() ? device.physical_index() : index;
    labels = {{"gpu", std::to_string(physical)},
              {"UUID", device.uuid()},
              {"pci_bus_id", device.pci_bus_id()}};
  }
  if (labels.empty()) labels.emplace_back("gpu", std::to_string(index));
  labels.emplace_back("Hostname", identity.hostname);
  return labels;
}

// Labels of a heap; `kind` distinguishes the heaps of a device.
Labels HeapLabels(const control::Status& status, const Identity& identity,
                  const control::HeapStatus& heap) {
  Labels labels = heap.has_device() ? DeviceLabels(status, identity, heap.device())
                                    : Labels{{"Hostname", identity.hostname}};
  labels.emplace_back("kind", heap.heap());
  return labels;
}

using HeapValue = uint64_t (control::HeapStatus::*)() const;
using HeapTest = bool (*)(const control::HeapStatus&);

bool Any(const control::HeapStatus&) { return true; }
bool OnDevice(const control::HeapStatus& heap) {
  return heap.has_device() && heap.heap() == "driver";
}
bool OnHost(const control::HeapStatus& heap) { return !heap.has_device() || heap.heap() == "host"; }
// Whether the heap lies in memory that the driver's heap counts already.
bool InAllocator(const control::HeapStatus& heap) { return !OnDevice(heap) && !OnHost(heap); }
bool HasReserved(const control::HeapStatus& heap) { return heap.has_reserved_bytes(); }

void AddHeaps(const control::Status& status, const Identity& identity, Writer* writer) {
  struct Family {
    const char *name, *type, *help;
    HeapTest test;
    HeapValue value;
  };
  using H = control::HeapStatus;
  const Family families[] = {
      {"gpumemtrace_device_memory_inuse_bytes", "gauge",
       "Device memory that the process has allocated from the driver.", OnDevice, &H::live_bytes},
      {"gpumemtrace_device_memory_peak_bytes", "gauge",
       "Maximum of the device memory held since recording began.", OnDevice, &H::peak_bytes},
      {"gpumemtrace_host_memory_inuse_bytes", "gauge",
       "Pinned and registered host memory that the process holds.", OnHost, &H::live_bytes},
      {"gpumemtrace_allocator_inuse_bytes", "gauge",
       "Blocks handed out by an allocator inside device memory; part of the driver's memory.",
       InAllocator, &H::live_bytes},
      {"gpumemtrace_allocator_peak_bytes", "gauge",
       "Maximum of the bytes handed out by the allocator.", InAllocator, &H::peak_bytes},
      {"gpumemtrace_allocator_reserved_bytes", "gauge",
       "Memory that an allocator has reserved from the driver, as it reports.", HasReserved,
       &H::reserved_bytes},
      {"gpumemtrace_live_allocations", "gauge", "Allocations not yet freed.", Any, &H::live_count},
      {"gpumemtrace_allocations_total", "counter", "Allocations since recording began.", Any,
       &H::allocations},
      {"gpumemtrace_allocated_bytes_total", "counter", "Bytes allocated since recording began.",
       Any, &H::allocated_bytes},
      {"gpumemtrace_frees_total", "counter", "Frees since recording began.", Any, &H::frees},
      {"gpumemtrace_allocation_failures_total", "counter", "Allocations that failed.", Any,
       &H::failures}};
  for (const Family& family : families) {
    bool is_first = true;
    for (const control::HeapStatus& heap : status.heaps()) {
      if (!family.test(heap)) continue;
      if (std::exchange(is_first, false)) writer->Family(family.name, family.type, family.help);
      writer->Value(HeapLabels(status, identity, heap), (heap.*family.value)());
    }
  }
  bool is_first = true;
  for (const control::HeapStatus& heap : status.heaps()) {
    if (std::exchange(is_first, false)) {
      writer->Family("gpumemtrace_growth_bytes_per_second", "gauge",
                     "Growth rate of live memory over about the last minute.");
    }
    writer->Value(HeapLabels(status, identity, heap), heap.growth_bytes_per_second());
  }
}

void AddDevices(const control::Status& status, const Identity& identity, Writer* writer) {
  using Has = bool (*)(const control::DeviceStatus&);
  const auto add = [&](const char* name, const char* help, Has has,
                       uint64_t (control::DeviceStatus::*value)() const) {
    bool is_first = true;
    for (const control::DeviceStatus& device : status.devices()) {
      if (!has(device)) continue;
      if (std::exchange(is_first, false)) writer->Family(name, "gauge", help);
      writer->Value(DeviceLabels(status, identity, device.index()), (device.*value)());
    }
  };
  add(
      "gpumemtrace_device_memory_total_bytes", "Total memory of the device.",
      [](const control::DeviceStatus& d) { return d.has_total_bytes(); },
      &control::DeviceStatus::total_bytes);
  add(
      "gpumemtrace_device_memory_used_bytes",
      "Memory of the device in use by all processes, when the driver was last queried.",
      [](const control::DeviceStatus& d) { return d.has_used_bytes(); },
      &control::DeviceStatus::used_bytes);
}

void AddSelf(const control::Status& status, Writer* writer) {
  const gmt::Losses& losses = status.losses();
  writer->One("gpumemtrace_events_total", "counter", "Events read from the process.",
              losses.delivered());
  writer->Family("gpumemtrace_ring_dropped_events_total", "counter",
                 "Events that were lost; live memory stays exact.");
  writer->Value({{"reason", "overrun"}}, losses.overrun());
  writer->Value({{"reason", "hole"}}, losses.holes());
  writer->Value({{"reason", "abandoned"}}, losses.abandoned());
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / kNsPerSecond; };
  writer->One("gpumemtrace_ring_backlog_events", "gauge", "Events waiting to be read.",
              losses.backlog());
  writer->One("gpumemtrace_collector_lag_seconds", "gauge",
              "How far the collector is behind the process.", seconds(status.lag_ns()));
  writer->One("gpumemtrace_collector_cpu_seconds_total", "counter",
              "Processor time used by the collector.", seconds(status.collector_cpu_ns()));
  writer->One("gpumemtrace_collector_resident_bytes", "gauge", "Memory of the collector.",
              status.collector_rss_bytes());
  writer->One("gpumemtrace_recording_bytes", "gauge", "Bytes written to the recording so far.",
              status.recording_bytes());
  writer->One("gpumemtrace_recording_stalled", "gauge",
              "1 while the recording cannot be written: the disk is full.",
              status.stalled() ? 1 : 0);
  writer->One("gpumemtrace_snapshots_total", "counter", "Snapshots in the recording.",
              status.snapshots());
  writer->One("gpumemtrace_live_set_exact", "gauge",
              "1 while live memory is known exactly, even if events were lost.",
              status.inexact_because().empty() ? 1 : 0);
  writer->One("gpumemtrace_stacks", "gauge", "Call stacks that have allocated memory.",
              status.sites());
  writer->One("gpumemtrace_attached_processes", "gauge", "Processes recorded by this collector.",
              1);
}

// By tier and not by suspect, because suspects come and go and their names are lines of code. Each
// tier always has a series, so that its graph starts from zero.
void AddLeaks(const gmt::LeakAnswer& leaks, Writer* writer) {
  if (leaks.cycles_for_likely() == 0) return;  // leaks are not searched for
  writer->One("gpumemtrace_leak_verdict", "gauge",
              "0: too early to tell, 1: no leak, 2: possible leak, 3: likely leak, 4: leak.",
              static_cast<int>(leaks.verdict()));
  writer->One("gpumemtrace_leak_cycles", "gauge", "Program steps compared in the search for leaks.",
              leaks.cycles().count());
  constexpr std::string_view kTiers[] = {"possible", "likely", "leak"};
  const auto by_tier = [&](auto value) {
    for (const std::string_view tier : kTiers) {
      double sum = 0;
      for (const gmt::LeakSuspect& suspect : leaks.suspects()) {
        if (suspect.tier() == tier) sum += value(suspect);
      }
      writer->Value({{"tier", std::string(tier)}}, sum);
    }
  };
  writer->Family("gpumemtrace_leak_suspect_bytes", "gauge",
                 "Memory retained so far by the 16 largest suspects.");
  by_tier([](const gmt::LeakSuspect& s) { return static_cast<double>(s.bytes()); });
  writer->Family("gpumemtrace_leak_suspect_growth_bytes", "gauge",
                 "Additional memory that these suspects retain per step.");
  by_tier([](const gmt::LeakSuspect& s) { return s.bytes_per_cycle().slope(); });
}

}  // namespace

std::string MetricsText(const control::Status& status, const gmt::LeakAnswer* leaks,
                        const Identity& identity, Dialect dialect) {
  Writer writer(dialect);
  writer.Family("gpumemtrace_build_info", "gauge", "Version of the collector.");
  writer.Value({{"version", identity.version}}, 1);
  writer.Family("gpumemtrace_target_info", "gauge", "The process that is recorded.");
  writer.Value({{"Hostname", identity.hostname},
                {"rank", identity.rank},
                {"local_rank", identity.local_rank},
                {"train_job", identity.train_job},
                {"slurm_job_id", identity.slurm_job_id}},
               1);
  AddHeaps(status, identity, &writer);
  AddDevices(status, identity, &writer);
  AddSelf(status, &writer);
  if (leaks != nullptr) AddLeaks(*leaks, &writer);
  return writer.Finish();
}

}  // namespace gmt::metrics
