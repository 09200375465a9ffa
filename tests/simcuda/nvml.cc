// A stand-in for NVML, as far as PyTorch and monitoring tools ask: devices by index and PCI id, and
// the memory that this process and others hold, which it asks the simulated driver for.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/simcuda/export_table.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS  // keep the first forms of functions under their own names
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);

struct nvmlDevice_st {
  int ordinal;
};

namespace {

constexpr unsigned int kMostDevices = 8;
nvmlDevice_st devices[kMostDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

template <typename Function>
Function* Driver(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(driver, name));
}

// Null before this process initialised CUDA.
const sim::ExportTable* Table() {
  auto get_table = Driver<decltype(cuGetExportTable)>("cuGetExportTable");
  const void* table = nullptr;
  bool found = get_table != nullptr && get_table(&table, &sim::kExportTableId) == CUDA_SUCCESS;
  return found ? static_cast<const sim::ExportTable*>(table) : nullptr;
}

}  // namespace

nvmlReturn_t nvmlInit_v2() { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_SUCCESS ? "Success" : "Not supported by the simulated device";
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  auto initialize = Driver<decltype(cuInit)>("cuInit");
  auto get_count = Driver<decltype(cuDeviceGetCount)>("cuDeviceGetCount");
  int found = 0;
  if (initialize == nullptr || initialize(0) != CUDA_SUCCESS || get_count(&found) != CUDA_SUCCESS) {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  *count = static_cast<unsigned int>(found);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  if (index >= kMostDevices) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &devices[index];
  return NVML_SUCCESS;
}

// "domain:bus:device.function"; the domain has four digits or eight, so the bus is found by its
// colon.
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  const char* colon = std::strchr(id, ':');
  if (colon == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned long bus = std::strtoul(colon + 1, nullptr, 16);
  if (bus == 0 || bus > kMostDevices) return NVML_ERROR_NOT_FOUND;
  *device = &devices[bus - 1];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* name, unsigned int length) {
  std::snprintf(name, length, "Simulated CUDA device");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  sim::MemoryUse use;
  if (Table() == nullptr || Table()->memory_use(device->ordinal, &use) != CUDA_SUCCESS) {
    return NVML_ERROR_UNINITIALIZED;
  }
  *memory = {};
  memory->total = use.total;
  memory->used = use.used + use.foreign;
  memory->free = use.total - memory->used;
  return NVML_SUCCESS;
}

// The two forms of the process list: PyTorch asks for the first, whose records have 16 bytes.
namespace {
template <typename Info>
nvmlReturn_t Processes(nvmlDevice_t device, unsigned int* count, Info* processes) {
  std::vector<sim::ProcessUse> list(*count);
  unsigned int found = 0;
  if (Table() == nullptr ||
      Table()->processes(device->ordinal, list.data(), *count, &found) != CUDA_SUCCESS) {
    *count = 0;
    return NVML_SUCCESS;
  }
  bool room = found <= *count;
  *count = found;
  if (!room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < found; ++i) {
    processes[i] = {};
    processes[i].pid = static_cast<unsigned int>(list[i].pid);
    processes[i].usedGpuMemory = list[i].bytes;
  }
  return NVML_SUCCESS;
}
}  // namespace

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  nvmlProcessInfo_v1_t* processes) {
  return Processes(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t* processes) {
  return Processes(device, count, processes);
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
