// collector/devices/devices.h
//
// Devices: what is known about the devices that the traced process uses, and the samples of their
// memory.
//
//   from the process      index, name, UUID, PCI bus id, size     when it creates a context there
//   from NVML, by UUID    NVML's index, compute capability, whether it is a MIG instance;
//                         then once a second: used, reserved and total bytes, by which processes
//
// A reading becomes a sample event if it differs from the last sample of that device by more than
// 2 MiB (in total or for one process, or because a process came or went), if ten seconds have
// passed, or if a snapshot is being taken. An idle day yields 8,640 samples.
//
// Order: an event follows those events of the target that happened before it. The ring may still
// hold events older than a reading, so the reading waits until they are written. A snapshot shows
// it immediately.
//
// Processes get names if their pids belong to our own pid namespace. In a container, NVML may
// report pids of another namespace: these are kept, but get no names.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_DEVICES_DEVICES_H_
#define GMT_COLLECTOR_DEVICES_DEVICES_H_

#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collector/devices/device_sampler.h"
#include "collector/devices/device_source.h"
#include "collector/output/recorder.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {

inline constexpr uint64_t kSamplePage = 2 << 20;
inline constexpr uint64_t kSampleAtLeastEvery = 10 * kSecond;

// The device as the traced process sees it; fields are empty or 0 if its driver did not report
// them.
struct DeviceIdentity {
  uint32_t index = 0;
  std::string name;
  DeviceKey key;
  uint64_t total_bytes = 0;
  std::string compute_capability;
};

class Devices {
 public:
  // `source`: null if there is none. `target_pid`: 0 if the target has no pid here.
  // `visible`: the target's CUDA_VISIBLE_DEVICES.
  Devices(std::unique_ptr<DeviceSource> source, uint64_t target_pid, std::string visible,
          uint64_t every_ns = kSampleEvery);

  // Adds a device and starts reading it. Does nothing if it is known already.
  void AddDevice(const DeviceIdentity& identity);

  // Writes the readings that are due and worth a sample. `drained`: `recorder` has received
  // everything that the target has written.
  void WriteSamples(Recorder* recorder, bool drained);
  // Make the next snapshot show the current readings. ShowInSnapshot() waits for them for a moment
  // only. ShowAtEnd() waits for up to `patience_ns`, because a short-lived process may have no
  // sample yet.
  void ShowInSnapshot(Recorder* recorder);
  void ShowAtEnd(Recorder* recorder, uint64_t patience_ns);

  // Returns whether more is known about some device than at the last call.
  bool TakeChanged();
  // Adds the known devices, and those of `used` about which nothing else is known.
  void AddTo(const std::bitset<256>& used, gmt::Facts* facts) const;

  // Returns "on" or "off: REASON". `asked`: the program itself queried the memory of its devices.
  std::string Source(bool asked) const;

 private:
  void TakeFound();
  struct Waiting {
    DeviceSampler::Reading reading;
    bool shown;  // in a snapshot, and therefore written in any case
  };
  void Show(Recorder* recorder);
  void TakeReadings();
  bool IsWorthWriting(const DeviceSampler::Reading& reading) const;
  gmt::Sample MakeSample(const DeviceSampler::Reading& reading) const;

  const uint64_t target_pid_;
  const std::string visible_;
  std::unique_ptr<DeviceSampler> sampler_;
  std::map<uint32_t, gmt::Device> devices_;
  std::deque<Waiting> waiting_;                         // to be written or dropped
  std::map<uint32_t, DeviceSampler::Reading> written_;  // the last sample of each
  bool changed_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICES_H_
