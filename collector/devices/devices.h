// collector/devices/devices.h
//
// Devices: what is known of the devices that the traced process uses, and the samples of their
// memory.
//
//   the process says           index, name, UUID, PCI bus id, size      when a context comes up there
//   NVML says, by that UUID    its own index, compute capability, whether it is an instance (MIG);
//                              then once a second: used, reserved and total bytes, and by whom
//
// A reading becomes a sample event where it tells something: it differs from the last sample of that
// device by more than a page of 2 MiB (in all, or of one process; or a process came or went), ten
// seconds have passed, or a snapshot is being taken. A day of rest is 8,640 samples.
//
// Order: an event stands behind those of the target that came before it. A reading is of now, and
// the ring may hold what is older: it waits until that has been written. A snapshot shows it at once.
//
// Processes have names where their numbers are of our own pid namespace. In a container NVML may
// speak in numbers of another: they are then kept, and name nobody here.
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

// As the traced process sees a device; empty and 0 where its driver did not say.
struct DeviceIdentity {
  uint32_t index = 0;
  std::string name;
  DeviceKey key;
  uint64_t total_bytes = 0;
  std::string compute_capability;
};

class Devices {
 public:
  // `source`: null where there is nobody to ask. `target_pid`: 0 where there is no such process.
  // `visible`: CUDA_VISIBLE_DEVICES of the target.
  Devices(std::unique_ptr<DeviceSource> source, uint64_t target_pid, std::string visible,
          uint64_t every_ns = kSampleEvery);

  // The first time it reads the device from then on.
  void Know(const DeviceIdentity& identity);

  // Writes the readings that tell something and whose turn it is. `drained`: the target has written
  // nothing that `recorder` has not been told.
  void WriteSamples(Recorder* recorder, bool drained);
  // Has the snapshot that comes next show what is used now. Waits a moment for that at most; at the
  // end, where a short-lived process may have no sample yet, as long as it is told to.
  void ShowInSnapshot(Recorder* recorder);
  void ShowAtEnd(Recorder* recorder, uint64_t patience_ns);

  // Whether more is known of some device than at the last call.
  bool TakeChanged();
  // The devices known, and those of `used` of which nothing else is.
  void AddTo(const std::bitset<256>& used, gmt::Facts* facts) const;

  // "on", or "off: " and why. `asked`: the program itself asked for the memory of its devices.
  std::string Source(bool asked) const;

 private:
  void TakeFound();
  struct Waiting {
    DeviceSampler::Reading reading;
    bool shown;  // in a snapshot: it is written in any case
  };
  void Show(Recorder* recorder);
  void TakeReadings();
  bool TellsSomething(const DeviceSampler::Reading& reading) const;
  gmt::Sample MakeSample(const DeviceSampler::Reading& reading) const;

  const uint64_t target_pid_;
  const std::string visible_;
  std::unique_ptr<DeviceSampler> sampler_;
  std::map<uint32_t, gmt::Device> devices_;
  std::deque<Waiting> waiting_;                         // to be written, or not
  std::map<uint32_t, DeviceSampler::Reading> written_;  // the last sample of each
  bool changed_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICES_H_
