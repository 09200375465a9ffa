#include "collector/devices/devices.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

// Short enough for a ring of the default size not to overflow meanwhile.
constexpr uint64_t kPatience = 25 * kMillisecond;
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // linux/nsfs.h, PID_NS_INIT_INO

bool IsFirstPidNamespace() {
  struct stat about;
  return stat("/proc/self/ns/pid", &about) == 0 && about.st_ino == kFirstPidNamespace;
}

std::string NameOfProcess(uint64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return name;
}

bool Differ(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) > kSamplePage; }

bool Differ(const std::optional<std::vector<ProcessMemory>>& before,
            const std::optional<std::vector<ProcessMemory>>& now) {
  if (before.has_value() != now.has_value()) return true;
  if (!now.has_value()) return false;
  return !std::equal(before->begin(), before->end(), now->begin(), now->end(),
                     [](const ProcessMemory& a, const ProcessMemory& b) {
                       return a.pid == b.pid && a.bytes.has_value() == b.bytes.has_value() &&
                              !Differ(a.bytes.value_or(0), b.bytes.value_or(0));
                     });
}

}  // namespace

Devices::Devices(std::unique_ptr<DeviceSource> source, uint64_t target_pid, std::string visible,
                 uint64_t every_ns)
    : target_pid_(target_pid), visible_(std::move(visible)) {
  if (source != nullptr) sampler_ = std::make_unique<DeviceSampler>(std::move(source), every_ns);
}

void Devices::AddDevice(const DeviceIdentity& identity) {
  const auto [known, is_new] = devices_.try_emplace(identity.index);
  if (!is_new) return;
  gmt::Device& device = known->second;
  device.set_index(identity.index);
  if (!identity.name.empty()) device.set_name(identity.name);
  if (!identity.key.pci_bus_id.empty()) device.set_pci_bus_id(identity.key.pci_bus_id);
  if (identity.total_bytes != 0) device.set_total_bytes(identity.total_bytes);
  if (!identity.compute_capability.empty())
    device.set_compute_capability(identity.compute_capability);
  // The driver does not report MIG UUIDs; a process that was assigned a MIG instance sees only
  // that.
  std::string uuid = identity.key.uuid;
  if (absl::StartsWith(visible_, "MIG-") && absl::StartsWith(uuid, "GPU-"))
    uuid.replace(0, 4, "MIG-");
  if (!uuid.empty()) device.set_uuid(uuid);
  changed_ = true;
  if (sampler_ != nullptr) sampler_->Watch(identity.index, identity.key);
}

void Devices::TakeFound() {
  for (const DeviceSampler::Found& found : sampler_->TakeFound()) {
    gmt::Device& device = devices_[found.device];
    if (!found.as.uuid.empty()) device.set_uuid(found.as.uuid);
    if (found.as.physical_index) device.set_physical_index(*found.as.physical_index);
    if (!found.as.compute_capability.empty())
      device.set_compute_capability(found.as.compute_capability);
    changed_ = true;
  }
}

bool Devices::TakeChanged() {
  if (sampler_ != nullptr) TakeFound();
  return std::exchange(changed_, false);
}

bool Devices::IsWorthWriting(const DeviceSampler::Reading& reading) const {
  const auto last = written_.find(reading.device);
  if (last == written_.end()) return true;
  const DeviceReading &before = last->second.values, &now = reading.values;
  return reading.time_ns - last->second.time_ns >= kSampleAtLeastEvery ||
         Differ(before.used_bytes, now.used_bytes) || before.total_bytes != now.total_bytes ||
         Differ(before.reserved_bytes.value_or(0), now.reserved_bytes.value_or(0)) ||
         Differ(before.processes, now.processes);
}

gmt::Sample Devices::MakeSample(const DeviceSampler::Reading& reading) const {
  gmt::Sample sample;
  sample.set_device(reading.device);
  sample.set_source("nvml");
  sample.set_used_bytes(reading.values.used_bytes);
  sample.set_total_bytes(reading.values.total_bytes);
  if (reading.values.reserved_bytes) sample.set_reserved_bytes(*reading.values.reserved_bytes);
  if (!reading.values.processes) return sample;
  const std::vector<ProcessMemory>& processes = *reading.values.processes;
  // The target has a context there: if its pid is missing, the pids are of another namespace.
  static const bool first_namespace = IsFirstPidNamespace();
  const bool numbers_are_ours = first_namespace || std::any_of(processes.begin(), processes.end(),
                                                               [&](const ProcessMemory& process) {
                                                                 return process.pid == target_pid_;
                                                               });
  for (const ProcessMemory& process : processes) {
    gmt::Sample::ProcessUse* use = sample.add_processes();
    use->set_pid(process.pid);
    if (process.bytes) use->set_bytes(*process.bytes);
    if (numbers_are_ours) use->set_name(NameOfProcess(process.pid));
  }
  return sample;
}

void Devices::TakeReadings() {
  for (DeviceSampler::Reading& reading : sampler_->TakeReadings())
    waiting_.push_back({std::move(reading), /*shown=*/false});
}

void Devices::WriteSamples(Recorder* recorder, bool drained) {
  if (sampler_ == nullptr) return;
  TakeReadings();
  while (!waiting_.empty()) {
    const auto& [reading, shown] = waiting_.front();
    if (!drained && reading.time_ns > recorder->newest_ns()) return;
    if (shown || IsWorthWriting(reading)) {
      recorder->AddSample(reading.time_ns, MakeSample(reading));
      written_[reading.device] = reading;
    }
    waiting_.pop_front();
  }
}

void Devices::ShowInSnapshot(Recorder* recorder) {
  if (sampler_ == nullptr) return;
  sampler_->Refresh(kPatience);
  Show(recorder);
}

void Devices::ShowAtEnd(Recorder* recorder, uint64_t patience_ns) {
  if (sampler_ == nullptr) return;
  sampler_->RefreshAtEnd(patience_ns);
  Show(recorder);
}

// Shows the newest reading of each device.
void Devices::Show(Recorder* recorder) {
  TakeReadings();
  std::set<uint32_t> shown;
  for (auto waiting = waiting_.rbegin(); waiting != waiting_.rend(); ++waiting) {
    if (!shown.insert(waiting->reading.device).second) continue;
    waiting->shown = true;
    recorder->ShowSample(MakeSample(waiting->reading));
  }
}

void Devices::AddTo(const std::bitset<256>& used, gmt::Facts* facts) const {
  std::map<uint32_t, gmt::Device> all = devices_;
  for (uint32_t index = 0; index < used.size(); ++index) {
    if (used[index]) all[index].set_index(index);
  }
  for (const auto& [index, device] : all) *facts->add_devices() = device;
}

std::string Devices::Source(bool asked) const {
  if (sampler_ == nullptr) return "off";
  if (devices_.empty()) return "off: no GPU was used, or which one is not known";
  const std::string trouble = sampler_->Trouble();
  if (sampler_->has_read()) return trouble.empty() ? "on" : absl::StrCat("on; ", trouble);
  if (trouble.empty()) return "off: the process ended before NVML answered";
  return absl::StrCat("off: ", trouble,
                      asked ? " (device memory is known from the program's own queries)" : "");
}

}  // namespace gmt::collector
