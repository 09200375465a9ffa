#include "collector/devices/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS  // use each version of a function by its own name
#include <nvml.h>

namespace gmt::collector {
namespace {

constexpr char kName[] = "libnvidia-ml.so.1";
constexpr const char* kFolders[] = {"/usr/lib/wsl/lib/", "/run/opengl-driver/lib/"};
constexpr uint32_t kMaxProcesses = 1 << 14;
constexpr int kListTries = 4;  // processes may start between two calls

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

nvmlDevice_t Device(uint64_t handle) { return reinterpret_cast<nvmlDevice_t>(handle); }

}  // namespace

std::vector<std::string> NvmlCandidates(const std::string& setting, const std::string& driver) {
  if (setting == "off") return {};
  if (absl::EndsWith(setting, "/")) return {setting + kName};
  if (!setting.empty()) return {setting, absl::StrCat(setting, "/", kName)};
  std::vector<std::string> files;
  if (!driver.empty()) files.push_back(FolderOf(driver) + kName);
  files.push_back(kName);
  for (const char* folder : kFolders) files.push_back(absl::StrCat(folder, kName));
  return files;
}

// Functions are null if the library's release lacks them.
struct Nvml::Functions {
  explicit Functions(void* library) : library_(library) {}

  template <typename Function>
  Function* Get(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

#define GMT_NVML(name) decltype(::name)* const name = Get<decltype(::name)>(#name)
  void* const library_;
  GMT_NVML(nvmlInit_v2);
  GMT_NVML(nvmlShutdown);
  GMT_NVML(nvmlErrorString);
  GMT_NVML(nvmlSystemGetDriverVersion);
  GMT_NVML(nvmlDeviceGetCount_v2);
  GMT_NVML(nvmlDeviceGetHandleByUUID);
  GMT_NVML(nvmlDeviceGetHandleByPciBusId_v2);
  GMT_NVML(nvmlDeviceGetIndex);
  GMT_NVML(nvmlDeviceGetUUID);
  GMT_NVML(nvmlDeviceGetCudaComputeCapability);
  GMT_NVML(nvmlDeviceIsMigDeviceHandle);
  GMT_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
  GMT_NVML(nvmlDeviceGetMemoryInfo);
  GMT_NVML(nvmlDeviceGetMemoryInfo_v2);
  GMT_NVML(nvmlDeviceGetComputeRunningProcesses);
  GMT_NVML(nvmlDeviceGetComputeRunningProcesses_v2);
  GMT_NVML(nvmlDeviceGetComputeRunningProcesses_v3);
  GMT_NVML(nvmlDeviceGetGraphicsRunningProcesses);
  GMT_NVML(nvmlDeviceGetGraphicsRunningProcesses_v2);
  GMT_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3);
  GMT_NVML(nvmlDeviceGetMPSComputeRunningProcesses);
  GMT_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2);
  GMT_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3);
#undef GMT_NVML
};

Nvml::Nvml(std::string setting, std::function<std::string()> find_driver)
    : setting_(std::move(setting)), find_driver_(std::move(find_driver)) {}

Nvml::~Nvml() {
  if (initialized_ && functions_->nvmlShutdown != nullptr) functions_->nvmlShutdown();
  if (library_ != nullptr) dlclose(library_);
}

absl::Status Nvml::Error(int code) const {
  const char* text = functions_->nvmlErrorString == nullptr
                         ? nullptr
                         : functions_->nvmlErrorString(static_cast<nvmlReturn_t>(code));
  const std::string message =
      text == nullptr ? absl::StrCat("NVML error ", code) : absl::StrCat("NVML says: ", text);
  if (code == NVML_ERROR_NOT_FOUND || code == NVML_ERROR_INVALID_ARGUMENT)
    return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

absl::Status Nvml::Open() {
  if (setting_ == "off") return absl::FailedPreconditionError("GPUMEMTRACE_NVML=off");
  const std::string driver = find_driver_ ? find_driver_() : "";
  for (const std::string& file : NvmlCandidates(setting_, driver)) {
    library_ = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library_ == nullptr) continue;
    path_ = file;
    return Initialize();
  }
  if (!setting_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("GPUMEMTRACE_NVML=", setting_, " is no library that can be opened"));
  }
  return absl::NotFoundError(absl::StrCat(kName, " was not found"));
}

absl::Status Nvml::Initialize() {
  functions_ = std::make_unique<Functions>(library_);
  if (functions_->nvmlInit_v2 == nullptr)
    return absl::UnavailableError(absl::StrCat(path_, " is not NVML"));
  const nvmlReturn_t result = functions_->nvmlInit_v2();
  initialized_ = result == NVML_SUCCESS;
  return initialized_ ? absl::OkStatus() : Error(result);
}

std::string Nvml::Version() const {
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
  const auto get = functions_->nvmlSystemGetDriverVersion;
  return get != nullptr && get(version, sizeof(version)) == NVML_SUCCESS ? version : "";
}

absl::StatusOr<uint32_t> Nvml::DeviceCount() const {
  unsigned int count = 0;
  if (functions_->nvmlDeviceGetCount_v2 == nullptr) return Error(NVML_ERROR_FUNCTION_NOT_FOUND);
  const nvmlReturn_t result = functions_->nvmlDeviceGetCount_v2(&count);
  if (result != NVML_SUCCESS) return Error(result);
  return count;
}

// CUDA's UUID has no prefix; only NVML knows whether it belongs to a device or to a MIG instance. A
// device whose UUID the driver did not report is found by its PCI bus id. It cannot be an instance,
// because those have UUIDs.
absl::StatusOr<DeviceFound> Nvml::Find(const DeviceKey& key) {
  nvmlDevice_t device = nullptr;
  nvmlReturn_t result = NVML_ERROR_NOT_FOUND;
  const absl::string_view digits = absl::StripPrefix(key.uuid, "GPU-");
  const auto by_uuid = functions_->nvmlDeviceGetHandleByUUID;
  for (const char* prefix : {"GPU-", "MIG-"}) {
    if (digits.empty() || by_uuid == nullptr || result == NVML_SUCCESS) continue;
    result = by_uuid(absl::StrCat(prefix, digits).c_str(), &device);
  }
  const auto by_bus = functions_->nvmlDeviceGetHandleByPciBusId_v2;
  if (digits.empty() && !key.pci_bus_id.empty() && by_bus != nullptr)
    result = by_bus(key.pci_bus_id.c_str(), &device);
  if (result != NVML_SUCCESS) return Error(result);

  DeviceFound found;
  found.handle = reinterpret_cast<uint64_t>(device);
  char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
  if (functions_->nvmlDeviceGetUUID != nullptr &&
      functions_->nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) == NVML_SUCCESS) {
    found.uuid = uuid;
  }
  unsigned int is_instance = 0, index = 0;
  nvmlDevice_t whole = device;
  if (functions_->nvmlDeviceIsMigDeviceHandle != nullptr &&
      functions_->nvmlDeviceGetDeviceHandleFromMigDeviceHandle != nullptr &&
      functions_->nvmlDeviceIsMigDeviceHandle(device, &is_instance) == NVML_SUCCESS &&
      is_instance != 0) {
    functions_->nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, &whole);
  }
  if (functions_->nvmlDeviceGetIndex != nullptr &&
      functions_->nvmlDeviceGetIndex(whole, &index) == NVML_SUCCESS) {
    found.physical_index = index;
  }
  int major = 0, minor = 0;
  if (functions_->nvmlDeviceGetCudaComputeCapability != nullptr &&
      functions_->nvmlDeviceGetCudaComputeCapability(whole, &major, &minor) == NVML_SUCCESS) {
    found.compute_capability = absl::StrCat(major, ".", minor);
  }
  return found;
}

absl::StatusOr<DeviceReading> Nvml::Read(uint64_t handle) {
  DeviceReading reading;
  if (absl::Status status = ReadMemory(handle, &reading); !status.ok()) return status;
  ReadProcesses(handle, &reading);
  return reading;
}

// The first version counts reserved memory as used, the second does not. So `used` is computed from
// the free memory in both.
absl::Status Nvml::ReadMemory(uint64_t handle, DeviceReading* reading) const {
  nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;
  if (const auto get = functions_->nvmlDeviceGetMemoryInfo_v2; get != nullptr) {
    nvmlMemory_v2_t memory = {};
    memory.version = nvmlMemory_v2;
    result = get(Device(handle), &memory);
    if (result == NVML_SUCCESS) {
      reading->total_bytes = memory.total;
      reading->used_bytes = memory.total - std::min(memory.free, memory.total);
      reading->reserved_bytes = memory.reserved;
      return absl::OkStatus();
    }
  }
  if (const auto get = functions_->nvmlDeviceGetMemoryInfo; get != nullptr) {
    nvmlMemory_t memory = {};
    result = get(Device(handle), &memory);
    if (result == NVML_SUCCESS) {
      reading->total_bytes = memory.total;
      reading->used_bytes = memory.total - std::min(memory.free, memory.total);
      return absl::OkStatus();
    }
  }
  return Error(result);
}

namespace {

using Known = std::map<uint64_t, std::optional<uint64_t>>;

// Adds one list. A process that computes and draws is in two lists, with the same total.
template <typename Info>
bool AddList(nvmlReturn_t (*get)(nvmlDevice_t, unsigned int*, Info*), nvmlDevice_t device,
             Known* known) {
  if (get == nullptr) return false;
  std::vector<Info> list;
  unsigned int count = 0;
  for (int tries = 0; tries < kListTries; ++tries) {
    const nvmlReturn_t result = get(device, &count, list.data());
    if (result == NVML_ERROR_INSUFFICIENT_SIZE && count <= kMaxProcesses) {
      count += 4;
      list.resize(count);
      continue;
    }
    if (result != NVML_SUCCESS) return false;
    for (size_t i = 0; i < std::min<size_t>(count, list.size()); ++i) {
      std::optional<uint64_t>& bytes = (*known)[list[i].pid];
      if (list[i].usedGpuMemory != static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE))
        bytes = std::max<uint64_t>(bytes.value_or(0), list[i].usedGpuMemory);
    }
    return true;
  }
  return false;
}

}  // namespace

// Uses the newest version that works. Older drivers have only older ones with shorter records.
void Nvml::ReadProcesses(uint64_t handle, DeviceReading* reading) const {
  const Functions& f = *functions_;
  const nvmlDevice_t device = Device(handle);
  Known known;
  const bool compute = AddList(f.nvmlDeviceGetComputeRunningProcesses_v3, device, &known) ||
                       AddList(f.nvmlDeviceGetComputeRunningProcesses_v2, device, &known) ||
                       AddList(f.nvmlDeviceGetComputeRunningProcesses, device, &known);
  if (!compute) return;
  // Instances, and devices without graphics or MPS, refuse these calls: no process is of that kind.
  AddList(f.nvmlDeviceGetGraphicsRunningProcesses_v3, device, &known) ||
      AddList(f.nvmlDeviceGetGraphicsRunningProcesses_v2, device, &known) ||
      AddList(f.nvmlDeviceGetGraphicsRunningProcesses, device, &known);
  AddList(f.nvmlDeviceGetMPSComputeRunningProcesses_v3, device, &known) ||
      AddList(f.nvmlDeviceGetMPSComputeRunningProcesses_v2, device, &known) ||
      AddList(f.nvmlDeviceGetMPSComputeRunningProcesses, device, &known);
  reading->processes.emplace();
  for (const auto& [pid, bytes] : known) reading->processes->push_back({pid, bytes});
}

}  // namespace gmt::collector
