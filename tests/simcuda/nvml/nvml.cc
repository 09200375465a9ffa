// A stand-in for NVML, as far as PyTorch, the collector and monitoring tools use it: the devices of
// the machine with their names, UUIDs and PCI ids, their memory, and the processes that hold it. It
// does not need CUDA, so a process other than the one that uses the devices can query it. Sources
// of the values: nvml_devices.h.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simcuda/device_identity.h"
#include "tests/simcuda/nvml/devices.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS  // keep the first forms of functions under their own names
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);

struct nvmlDevice_st {
  int physical;     // of an instance: the number of its device
  std::string key;  // nvml_script.h
  std::string uuid;
  bool is_instance;
};

namespace {

// Handles are the addresses of the elements: created once, never moved.
std::vector<nvmlDevice_st>& Devices() {
  static std::vector<nvmlDevice_st>& devices = *[] {
    auto* list = new std::vector<nvmlDevice_st>;
    for (int device = 0; device < sim::NvmlDeviceCount(); ++device)
      list->push_back({device, std::to_string(device), sim::UuidText(device), false});
    for (const sim::NvmlScript::Instance& instance : sim::NvmlInstances())
      list->push_back({instance.device, instance.key, instance.uuid, true});
    return list;
  }();
  return devices;
}

template <typename Accept>
nvmlReturn_t Find(nvmlDevice_t* device, Accept accept) {
  for (nvmlDevice_st& known : Devices()) {
    if (!accept(known)) continue;
    *device = &known;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t Copy(const std::string& text, char* to, unsigned int length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

// The forms of the process list. PyTorch uses the first one, whose records have 16 bytes.
template <typename Info>
nvmlReturn_t Processes(const char* call, nvmlDevice_t device, unsigned int* count, Info* infos) {
  if (const int error = sim::EnterNvml(call)) return static_cast<nvmlReturn_t>(error);
  const std::vector<sim::NvmlScript::Process> list = sim::NvmlProcessesOf(device->key);
  const bool room = list.size() <= *count;
  *count = static_cast<unsigned int>(list.size());
  if (!room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < list.size(); ++i) {
    infos[i] = {};
    infos[i].pid = list[i].pid;
    infos[i].usedGpuMemory =
        list[i].bytes.value_or(static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));
  }
  return NVML_SUCCESS;
}

template <typename Info>
nvmlReturn_t NoProcesses(const char* call, unsigned int* count, Info*) {
  if (const int error = sim::EnterNvml(call)) return static_cast<nvmlReturn_t>(error);
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

#define SIM_ENTER() \
  if (const int error = sim::EnterNvml(__func__)) return static_cast<nvmlReturn_t>(error)

nvmlReturn_t nvmlInit_v2() {
  SIM_ENTER();
  return sim::NvmlHasMachine() ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}
nvmlReturn_t nvmlInitWithFlags(unsigned int) { return nvmlInit_v2(); }
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return Copy("580.00", version, length);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return Copy("13.580.00", version, length);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  SIM_ENTER();
  *count = static_cast<unsigned int>(sim::NvmlDeviceCount());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  SIM_ENTER();
  if (index >= static_cast<unsigned int>(sim::NvmlDeviceCount()))
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = &Devices()[index];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  SIM_ENTER();
  const int physical = sim::PhysicalOfPciBusId(id, sim::NvmlDeviceCount());
  return Find(device, [&](const nvmlDevice_st& known) { return known.physical == physical; });
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  SIM_ENTER();
  return Find(device, [&](const nvmlDevice_st& known) { return known.uuid == uuid; });
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  SIM_ENTER();
  if (device->is_instance) return NVML_ERROR_NOT_SUPPORTED;
  *index = static_cast<unsigned int>(device->physical);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  return Copy(device->uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  SIM_ENTER();
  return Copy(std::string(sim::kDeviceName) + (device->is_instance ? " MIG" : ""), name, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  *info = {};
  info->bus = static_cast<unsigned int>(device->physical + 1);
  std::snprintf(info->busIdLegacy, sizeof(info->busIdLegacy), "%s",
                sim::PciBusIdOf(device->physical).c_str());
  std::snprintf(info->busId, sizeof(info->busId), "0000%s",
                sim::PciBusIdOf(device->physical).c_str());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int* major, int* minor) {
  SIM_ENTER();
  std::tie(*major, *minor) = sim::NvmlComputeCapability();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  SIM_ENTER();
  *is_mig = device->is_instance;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance,
                                                          nvmlDevice_t* device) {
  SIM_ENTER();
  if (!instance->is_instance) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &Devices()[static_cast<size_t>(instance->physical)];
  return NVML_SUCCESS;
}

// In the first form, the used memory includes the reserved memory.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  SIM_ENTER();
  const sim::NvmlMemory found = sim::NvmlMemoryOf(device->key);
  *memory = {};
  memory->total = found.total;
  memory->free = found.free();
  memory->used = found.total - found.free();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  SIM_ENTER();
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const sim::NvmlMemory found = sim::NvmlMemoryOf(device->key);
  memory->total = found.total;
  memory->reserved = found.reserved;
  memory->free = found.free();
  memory->used = found.total - found.free() - found.reserved;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* processes) {
  return Processes(__func__, device, count, processes);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_v2_t* processes) {
  return Processes(__func__, device, count, processes);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes) {
  return Processes(__func__, device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned int* count,
                                                      nvmlProcessInfo_t* processes) {
  return NoProcesses(__func__, count, processes);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned int* count,
                                                        nvmlProcessInfo_t* processes) {
  return NoProcesses(__func__, count, processes);
}

// XLA computes the bandwidth between host and device from generation and width.
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t, unsigned int* generation) {
  SIM_ENTER();
  *generation = 4;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t, unsigned int* lanes) {
  SIM_ENTER();
  *lanes = 16;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t, unsigned int, nvmlEnableState_t* state) {
  SIM_ENTER();
  *state = NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t, unsigned int,
                                                 nvmlIntNvLinkDeviceType_t*) {
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t, unsigned int, nvmlPciInfo_t*) {
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t, nvmlGpuFabricInfoV_t*) {
  return NVML_ERROR_NOT_SUPPORTED;
}
