// cuInit, versions, and the properties of devices.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/simcuda/device_identity.h"
#include "tests/simcuda/simulator.h"

namespace {

constexpr int kDriverVersion = 13000;

// Attributes that do not depend on the settings, modelled on a GPU with 108 multiprocessors.
// Attributes that are not listed are 0.
struct Constant {
  CUdevice_attribute attribute;
  int value;
};
constexpr Constant kConstants[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 163 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 << 10},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1215000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
};

int Attribute(CUdevice_attribute attribute, const sim::Device& device) {
  const sim::Settings& settings = sim::Simulator::Get().settings;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return settings.compute_major;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) return settings.compute_minor;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return device.physical() + 1;
  for (const Constant& constant : kConstants) {
    if (constant.attribute == attribute) return constant.value;
  }
  return 0;
}

// Runs `body` with an existing device.
template <typename Body>
CUresult WithDevice(const char* name, CUdevice ordinal, Body body) {
  return sim::Call(name, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    sim::Device* device = simulator.device(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

// Loads the library named by CUDA_INJECTION64_PATH and calls its InitializeInjection, once and at a
// point where CUDA can already be used. A library that cannot be loaded is ignored.
void InjectOnce() {
  static std::atomic<bool> done{false};
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0' || done.exchange(true)) return;
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  if (auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) {
    initialize();
  }
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  // The runtime calls cuInit repeatedly; only the call that has an effect is reported to a tool.
  if (sim::Simulator::Ready() == CUDA_SUCCESS) return CUDA_SUCCESS;
  sim::ApiCall call(__func__);
  CUresult result = sim::Simulator::Get().Init();
  if (result == CUDA_SUCCESS) {
    InjectOnce();
    sim::DeliverNow({.kind = sim::NoticeKind::kInitialized});
  }
  return call.Finish(result);
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device& found) {
    *device = found.ordinal();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return sim::Call(__func__, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    *count = static_cast<int>(simulator.devices().size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device&) {
    std::snprintf(name, length, "%s", sim::kDeviceName);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device& device) {
    std::memcpy(uuid->bytes, sim::UuidOf(device.physical()).data(), sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device& device) {
    *bytes = device.budget().total();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device& device) {
    *value = Attribute(attribute, device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice ordinal) {
  return WithDevice(__func__, ordinal, [&](sim::Device& device) {
    std::snprintf(id, length, "%s", sim::PciBusIdOf(device.physical()).c_str());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return sim::Call(__func__, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    if (std::strchr(id, ':') == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int physical = sim::PhysicalOfPciBusId(id, sim::Settings::kMaxDevices);
    for (auto& found : simulator.devices()) {
      if (found->physical() != physical) continue;
      *device = found->ordinal();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  return WithDevice(__func__, ordinal, [&](sim::Device&) {
    *can = ordinal != peer;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext, unsigned int) { return sim::Simulator::Ready(); }
CUresult cuCtxDisablePeerAccess(CUcontext) { return sim::Simulator::Ready(); }
CUresult cuProfilerStart() { return sim::Simulator::Ready(); }
CUresult cuProfilerStop() { return sim::Simulator::Ready(); }
