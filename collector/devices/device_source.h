// collector/devices/device_source.h
//
// DeviceSource: who knows of the machine's devices what no program knows of its own: how much memory
// of a device all processes hold, and which ones. NVML (collector/devices/nvml.h), or a test's.
//
// Thread safety: one thread at a time. Every function may take long: 100 ms and more on a machine
// that is busy, or whose driver has to wake a device up.

#ifndef GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_
#define GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmt::collector {

// How the traced process calls a device; empty where the driver did not say.
struct DeviceKey {
  std::string uuid;        // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
  std::string pci_bus_id;  // "0000:65:00.0"
};

// What the source calls it.
struct DeviceFound {
  uint64_t handle = 0;                     // for Read()
  std::string uuid;                        // of an instance (MIG): "MIG-..."
  std::optional<uint32_t> physical_index;  // of an instance: that of its device
  std::string compute_capability;          // "9.0"; empty: not known
};

struct ProcessMemory {
  uint64_t pid = 0;
  std::optional<uint64_t> bytes;  // nothing: it has a context, and how much it holds is not told

  bool operator==(const ProcessMemory&) const = default;
};

struct DeviceReading {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;                 // all that is not free, what is reserved included
  std::optional<uint64_t> reserved_bytes;  // by driver and firmware
  // By pid. Nothing: it was not told, which is not "no process".
  std::optional<std::vector<ProcessMemory>> processes;
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  // Before anything else, once. The message of a failure says what is missing.
  virtual absl::Status Open() = 0;
  // NOT_FOUND: the source knows no such device.
  virtual absl::StatusOr<DeviceFound> Find(const DeviceKey& key) = 0;
  virtual absl::StatusOr<DeviceReading> Read(uint64_t handle) = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_DEVICE_SOURCE_H_
