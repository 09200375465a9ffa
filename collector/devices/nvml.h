// collector/devices/nvml.h
//
// Nvml: NVIDIA's management library as a DeviceSource. It is opened at run time and never linked,
// because a machine without it is normal. It is used in the collector and not in the traced
// process, whose memory, threads and start-up time must not change.
//
// Search order
//   1. the file or folder in GPUMEMTRACE_NVML, and then nothing else; "off": no search
//   2. beside the libcuda.so.1 that the traced process has mapped. The two come together, even in
//      containers that keep them in their own folder, named only in LD_LIBRARY_PATH
//   3. the loader's search path, then the folders of WSL and NixOS
//
// Devices are found by the UUID that the driver reported in the traced process. Indices do not
// match: NVML counts all devices by PCI bus id, a process counts those in its CUDA_VISIBLE_DEVICES.
//
// If one item is unsupported (no memory of its own, no process list, no permission), the others are
// still read.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_DEVICES_NVML_H_
#define GMT_COLLECTOR_DEVICES_NVML_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collector/devices/device_source.h"

namespace gmt::collector {

// Returns the files to try, in order. `setting`: GPUMEMTRACE_NVML, or empty. `driver`: path of the
// traced process's libcuda.so.1, or empty.
std::vector<std::string> NvmlCandidates(const std::string& setting, const std::string& driver);

class Nvml : public DeviceSource {
 public:
  // `setting`: as above. `find_driver`: called by Open(); may be empty.
  explicit Nvml(std::string setting, std::function<std::string()> find_driver = nullptr);
  ~Nvml() override;

  absl::Status Open() override;
  absl::StatusOr<DeviceFound> Find(const DeviceKey& key) override;
  absl::StatusOr<DeviceReading> Read(uint64_t handle) override;

  // After Open(): the file that was opened, its version and its number of devices.
  const std::string& path() const { return path_; }
  std::string Version() const;
  absl::StatusOr<uint32_t> DeviceCount() const;

 private:
  struct Functions;
  absl::Status Initialize();
  absl::Status Error(int code) const;
  absl::Status ReadMemory(uint64_t handle, DeviceReading* reading) const;
  void ReadProcesses(uint64_t handle, DeviceReading* reading) const;

  const std::string setting_;
  const std::function<std::string()> find_driver_;
  std::string path_;
  void* library_ = nullptr;
  bool initialized_ = false;
  std::unique_ptr<Functions> functions_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_DEVICES_NVML_H_
