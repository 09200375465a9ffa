// collector/devices/nvml.h
//
// Nvml: NVIDIA's management library as a DeviceSource. It is opened, never linked: a machine without
// it is an ordinary one. It lives in the collector and not in the traced process, whose memory,
// threads and start-up time are its own.
//
// Where it is looked for, in this order
//   1. the file or folder that GPUMEMTRACE_NVML names, and then nowhere else; "off": not at all
//   2. beside the libcuda.so.1 that the traced process has mapped: the two come together, also where
//      containers keep them in a folder of their own that only LD_LIBRARY_PATH names
//   3. where the loader looks, then the folders of WSL and NixOS
//
// A device is found by its UUID, as the driver told it in the traced process: numbers mean something
// else to NVML, which counts all devices by PCI bus id, than to a process with CUDA_VISIBLE_DEVICES.
//
// What is not supported (no memory of its own, no list of processes, no permission) is no failure of
// the rest.
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

// Files to try, in order. `setting`: GPUMEMTRACE_NVML, or empty. `driver`: path of the traced
// process's libcuda.so.1, or empty.
std::vector<std::string> NvmlCandidates(const std::string& setting, const std::string& driver);

class Nvml : public DeviceSource {
 public:
  // `setting`: as above. `find_driver`: called by Open(); may be empty.
  explicit Nvml(std::string setting, std::function<std::string()> find_driver = nullptr);
  ~Nvml() override;

  absl::Status Open() override;
  absl::StatusOr<DeviceFound> Find(const DeviceKey& key) override;
  absl::StatusOr<DeviceReading> Read(uint64_t handle) override;

  // After Open(): the file that was opened, its version, and how many devices it knows.
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
