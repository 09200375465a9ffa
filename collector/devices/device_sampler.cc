#include "collector/devices/device_sampler.h"

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::collector {
namespace {

constexpr auto kPatienceAtEnd = std::chrono::milliseconds(200);

uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

// State shared by both threads; destroyed by the one that ends last.
struct DeviceSampler::Shared {
  Shared(std::unique_ptr<DeviceSource> from, uint64_t every)
      : source(std::move(from)), every_ns(every) {}

  void Work();
  void FindNew();
  void ReadAll();

  const std::unique_ptr<DeviceSource> source;  // used only by the thread
  const uint64_t every_ns;
  std::map<uint32_t, uint64_t> handles;  // by device; used only by the thread

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<uint32_t, DeviceKey>> wanted;  // not looked up yet
  std::vector<Reading> readings;
  std::vector<Found> found;
  std::string trouble;                       // of the source
  std::map<uint32_t, std::string> refusals;  // by device
  std::optional<uint64_t> round_ns;          // how long the last round took
  uint64_t asked = 0, served = 0;            // request numbers of Refresh()
  bool read_any = false, stop = false, ended = false;
};

DeviceSampler::DeviceSampler(std::unique_ptr<DeviceSource> source, uint64_t every_ns)
    : shared_(std::make_shared<Shared>(std::move(source), every_ns)) {}

DeviceSampler::~DeviceSampler() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  if (started_) shared_->changed.wait_for(lock, kPatienceAtEnd, [this] { return shared_->ended; });
}

void DeviceSampler::Watch(uint32_t device, DeviceKey key) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wanted.emplace_back(device, std::move(key));
  shared_->changed.notify_all();
  if (started_) return;
  started_ = true;
  std::thread([shared = shared_] { shared->Work(); }).detach();
}

void DeviceSampler::Shared::Work() {
  pthread_setname_np(pthread_self(), "devices");
  const absl::Status opened = source->Open();
  std::unique_lock lock(mutex);
  if (!opened.ok()) trouble = std::string(opened.message());
  while (opened.ok() && !stop) {
    const uint64_t request = asked, began = NowNs();
    lock.unlock();
    FindNew();
    ReadAll();
    lock.lock();
    const uint64_t ended_ns = NowNs();
    round_ns = ended_ns - began;
    served = request;
    changed.notify_all();
    const uint64_t pause = *round_ns < every_ns ? every_ns - *round_ns : 0;
    changed.wait_for(lock, std::chrono::nanoseconds(pause),
                     [&] { return stop || asked != served || !wanted.empty(); });
  }
  ended = true;
  changed.notify_all();
}

void DeviceSampler::Shared::FindNew() {
  std::vector<std::pair<uint32_t, DeviceKey>> keys;
  {
    const std::lock_guard lock(mutex);
    keys.swap(wanted);
  }
  for (const auto& [device, key] : keys) {
    const absl::StatusOr<DeviceFound> as = source->Find(key);
    const std::lock_guard lock(mutex);
    if (as.ok()) {
      handles[device] = as->handle;
      found.push_back({device, *as});
    } else {
      refusals[device] = absl::IsNotFound(as.status()) ? "NVML does not know it"
                                                       : std::string(as.status().message());
    }
  }
}

void DeviceSampler::Shared::ReadAll() {
  for (const auto& [device, handle] : handles) {
    const uint64_t now = NowNs();
    absl::StatusOr<DeviceReading> values = source->Read(handle);
    const std::lock_guard lock(mutex);
    if (values.ok()) {
      readings.push_back({device, now, *std::move(values)});
      refusals.erase(device);
      read_any = true;
    } else {
      refusals[device] = std::string(values.status().message());
    }
  }
}

std::vector<DeviceSampler::Reading> DeviceSampler::TakeReadings() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->readings, {});
}

std::vector<DeviceSampler::Found> DeviceSampler::TakeFound() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->found, {});
}

bool DeviceSampler::Refresh(uint64_t patience_ns) { return Await(patience_ns, false); }
bool DeviceSampler::RefreshAtEnd(uint64_t patience_ns) { return Await(patience_ns, true); }

bool DeviceSampler::Await(uint64_t patience_ns, bool though_unknown) {
  Shared& s = *shared_;
  std::unique_lock lock(s.mutex);
  if (!started_ || s.ended) return false;
  const uint64_t request = ++s.asked;
  s.changed.notify_all();
  if (s.round_ns.has_value() ? *s.round_ns > patience_ns : !though_unknown) return false;
  s.changed.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                     [&] { return s.served >= request || s.ended; });
  return s.served >= request;
}

std::string DeviceSampler::Trouble() const {
  const std::lock_guard lock(shared_->mutex);
  std::string text = shared_->trouble;
  for (const auto& [device, why] : shared_->refusals)
    absl::StrAppend(&text, text.empty() ? "" : "; ", "GPU ", device, ": ", why);
  return text;
}

bool DeviceSampler::has_read() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->read_any;
}

}  // namespace gmt::collector
