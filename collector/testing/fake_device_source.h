// collector/testing/fake_device_source.h
//
// For tests: a DeviceSource whose answers and delays the test controls.

#ifndef GMT_COLLECTOR_TESTING_FAKE_DEVICE_SOURCE_H_
#define GMT_COLLECTOR_TESTING_FAKE_DEVICE_SOURCE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "collector/devices/device_source.h"

namespace gmt::collector {

// The answers of the fake. Shared with its test, which may change them at any time.
struct FakeMachine {
  std::mutex mutex;
  std::condition_variable changed;
  absl::Status open;
  std::map<std::string, DeviceFound> devices;  // by UUID
  std::map<uint64_t, DeviceReading> memory;    // by handle
  std::map<uint64_t, absl::Status> refusals;   // by handle
  std::chrono::milliseconds read_takes{0};
  bool hangs = false;  // Read() does not return while it is set
  int opened = 0, reads = 0, being_read = 0;

  void Set(uint64_t handle, DeviceReading reading) {
    const std::lock_guard lock(mutex);
    memory[handle] = std::move(reading);
  }
  void Hang(bool hang) {
    const std::lock_guard lock(mutex);
    hangs = hang;
    changed.notify_all();
  }
  // Waits until Read() has ended `more` more times.
  void AwaitReads(int more) {
    std::unique_lock lock(mutex);
    const int wanted = reads + more;
    changed.wait(lock, [&] { return reads >= wanted; });
  }
  // Waits until Read() has ended `wanted` times since the start.
  void AwaitReadsInAll(int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reads >= wanted; });
  }
  // Waits until a Read() has begun.
  void AwaitReading() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return being_read > 0; });
  }
};

class FakeDeviceSource : public DeviceSource {
 public:
  explicit FakeDeviceSource(std::shared_ptr<FakeMachine> machine) : machine_(std::move(machine)) {}

  absl::Status Open() override {
    const std::lock_guard lock(machine_->mutex);
    ++machine_->opened;
    return machine_->open;
  }
  absl::StatusOr<DeviceFound> Find(const DeviceKey& key) override {
    const std::lock_guard lock(machine_->mutex);
    const auto found = machine_->devices.find(key.uuid);
    if (found == machine_->devices.end()) return absl::NotFoundError("no such device");
    return found->second;
  }
  absl::StatusOr<DeviceReading> Read(uint64_t handle) override {
    std::unique_lock lock(machine_->mutex);
    ++machine_->being_read;
    machine_->changed.notify_all();
    machine_->changed.wait(lock, [&] { return !machine_->hangs; });
    if (machine_->read_takes.count() != 0)
      machine_->changed.wait_for(lock, machine_->read_takes, [] { return false; });
    --machine_->being_read;
    ++machine_->reads;
    machine_->changed.notify_all();
    if (const auto refusal = machine_->refusals.find(handle); refusal != machine_->refusals.end())
      return refusal->second;
    return machine_->memory[handle];
  }

 private:
  std::shared_ptr<FakeMachine> machine_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_FAKE_DEVICE_SOURCE_H_
