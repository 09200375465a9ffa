// NVML's view of the machine's devices, which is combined from these sources:
//
//   this process's own driver, once it is initialised     memory of the devices that it sees
//   the file of SIMCUDA_SHARED                            memory that processes hold, from outside
//   the file of SIMCUDA_NVML (nvml_script.h)              additions, replacements, errors, delays
//
// NVML ignores CUDA_VISIBLE_DEVICES: it numbers all devices of the machine by PCI bus id. Without
// SIMCUDA_SHARED each process has the devices to itself. A process without a driver then has none,
// and nvmlInit_v2 fails there unless there is a script.
//
// Thread safety: all functions from any thread.
#ifndef TESTS_SIMCUDA_NVML_DEVICES_H_
#define TESTS_SIMCUDA_NVML_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simcuda/nvml/script.h"

namespace sim {

struct NvmlMemory {
  uint64_t total = 0, reserved = 0, used = 0;  // used without reserved

  uint64_t free() const { return used + reserved < total ? total - used - reserved : 0; }
};

// Waits for the latency that the script gives the call, and returns its error code; 0: carry it
// out.
int EnterNvml(const char* call);

// Returns whether there is a machine to report on: a shared one, a scripted one, or this process's
// own.
bool NvmlHasMachine();

int NvmlDeviceCount();
std::vector<NvmlScript::Instance> NvmlInstances();  // of MIG

// `key`: "0" for device 0, "0/1" for its instance 1. Each call of NvmlMemoryOf counts as a query.
NvmlMemory NvmlMemoryOf(const std::string& key);
std::vector<NvmlScript::Process> NvmlProcessesOf(const std::string& key);

// Major and minor.
std::pair<int, int> NvmlComputeCapability();

}  // namespace sim

#endif  // TESTS_SIMCUDA_NVML_DEVICES_H_
