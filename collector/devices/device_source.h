// collector/devices/device_source.h
//
// DeviceSource: reports about the machine's devices what no program knows itself: how much memory
// of a device all processes hold, and which processes they are. Implemented by NVML
// (collector/devices/nvml.h) and by tests.
//
// Thread safety: one thread at a time. Every function may be slow: 100 ms and more on a busy
// machine, or if the driver has to wake a device up.

#ifndef GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_
#define GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmt::collector {

// How the traced process identifies a device; empty if the driver did not report it.
struct DeviceKey {
  std::string uuid;        // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
  std::string pci_bus_id;  // "0000:65:00.0"
};

// How the source identifies it.
struct DeviceFound {
  uint64_t handle = 0;                     // for Read()
  std::string uuid;                        // of a MIG instance: "MIG-..."
  std::optional<uint32_t> physical_index;  // of a MIG instance: that of its device
  std::string compute_capability;          // "9.0"; empty: unknown
};

struct ProcessMemory {
  uint64_t pid = 0;
  std::optional<uint64_t> bytes;  // nullopt: it has a context of unknown size

  bool operator==(const ProcessMemory&) const = default;
};

struct DeviceReading {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;                 // all that is not free, including what is reserved
  std::optional<uint64_t> reserved_bytes;  // by driver and firmware
  // Sorted by pid. nullopt: unknown, which differs from "no process".
  std::optional<std::vector<ProcessMemory>> processes;
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  // Must be called once before anything else. The message of an error names what is missing.
  virtual absl::Status Open() = 0;
  // Returns NOT_FOUND if the source does not have this device.
  virtual absl::StatusOr<DeviceFound> Find(const DeviceKey& key) = 0;
  virtual absl::StatusOr<DeviceReading> Read(uint64_t handle) = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_
