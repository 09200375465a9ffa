// collector/devices/device_sampler.h
//
// DeviceSampler: reads the devices that the traced process uses once a second, in a thread of its
// own. NVML takes tens of milliseconds to begin and now and then as long for one answer, in which a
// busy ring would lap its reader: the thread that drains never waits for it, but for a bounded moment
// where a snapshot wants a reading that is not older than itself and readings are known to be quick.
//
//   Watch(device) --> [thread: Open, Find, Read, Read, ...] --> TakeReadings(), TakeFound()
//
// The thread begins with the first device: where no GPU is used no library is opened.
//
// Thread safety: the public methods from one thread; the source lives in the other only. The end
// does not wait for a source that hangs: the thread is then left behind, with all that it uses.

#ifndef GMT_COLLECTOR_DEVICES_DEVICE_SAMPLER_H_
#define GMT_COLLECTOR_DEVICES_DEVICE_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/clock.h"
#include "collector/devices/device_source.h"

namespace gmt::collector {

inline constexpr uint64_t kSampleEvery = kSecond;

class DeviceSampler {
 public:
  struct Reading {
    uint32_t device = 0;   // as in Watch()
    uint64_t time_ns = 0;  // CLOCK_MONOTONIC, of when it was asked for
    DeviceReading values;
  };
  struct Found {
    uint32_t device = 0;
    DeviceFound as;
  };

  explicit DeviceSampler(std::unique_ptr<DeviceSource> source, uint64_t every_ns = kSampleEvery);
  ~DeviceSampler();
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;

  // From now on the device is read.
  void Watch(uint32_t device, DeviceKey key);

  // Since the last call.
  std::vector<Reading> TakeReadings();
  std::vector<Found> TakeFound();

  // Asks for readings of now and waits for them, `patience_ns` at most. Not at all where the last
  // ones took longer than that. True: they are there.
  bool Refresh(uint64_t patience_ns);
  // As above, where it is the last moment: waits for the first readings too.
  bool RefreshAtEnd(uint64_t patience_ns);

  // "" while all is well; else what failed: the source as a whole, or a device of it.
  std::string Trouble() const;
  // Whether anything was read so far.
  bool has_read() const;

 private:
  struct Shared;
  bool Await(uint64_t patience_ns, bool though_unknown);

  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICE_SAMPLER_H_
