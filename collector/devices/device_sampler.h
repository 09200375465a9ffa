// collector/devices/device_sampler.h
//
// DeviceSampler: reads the devices that the traced process uses once a second, in its own thread.
// NVML takes tens of milliseconds to initialize, and occasionally as long for one answer. In that
// time a busy ring would lap its reader, so the draining thread does not wait for the sampler. The
// only exception is a snapshot, which wants a reading no older than itself: it waits for a bounded
// time, and only if readings are known to be quick.
//
//   Watch(device) --> [thread: Open, Find, Read, Read, ...] --> TakeReadings(), TakeFound()
//
// The thread starts with the first device: if no GPU is used, no library is opened.
//
// Thread safety: call the public methods from one thread; only the sampler's thread uses the
// source. The destructor does not wait for a source that hangs: it leaves the thread behind with
// all that it uses.

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
    uint32_t device = 0;   // as passed to Watch()
    uint64_t time_ns = 0;  // CLOCK_MONOTONIC, when it was requested
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

  // Starts reading the device.
  void Watch(uint32_t device, DeviceKey key);

  // Return what was added since the last call.
  std::vector<Reading> TakeReadings();
  std::vector<Found> TakeFound();

  // Requests new readings and waits for them for up to `patience_ns`; does not wait if the last
  // ones took longer than that. Returns true if they have arrived.
  bool Refresh(uint64_t patience_ns);
  // Like Refresh(), for the end of a recording: also waits for the first readings.
  bool RefreshAtEnd(uint64_t patience_ns);

  // Returns what failed, the source as a whole or single devices; empty if nothing did.
  std::string Trouble() const;
  // Returns whether any device has been read so far.
  bool has_read() const;

 private:
  struct Shared;
  bool Await(uint64_t patience_ns, bool though_unknown);

  std::shared_ptr<Shared> shared_;
  bool started_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICE_SAMPLER_H_
