// OnDevice: runs the body of a test in a child process with its own simulated device. A process
// reads its settings once, so a test with other settings needs another process.
#ifndef TESTS_SIMCUDA_ON_DEVICE_H_
#define TESTS_SIMCUDA_ON_DEVICE_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sim {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// `settings`: environment variables of the child. `body` runs with the primary context of device 0
// current; failed gtest assertions in it fail the calling test.
void OnDevice(const std::map<std::string, std::string>& settings,
              const std::function<void()>& body);

// The same before cuInit and without a context.
void InFreshProcess(const std::map<std::string, std::string>& settings,
                    const std::function<void()>& body);

// Returns the free bytes reported by cuMemGetInfo.
uint64_t FreeMemory();

// Returns a kernel of that name from a module that stays loaded.
CUfunction LoadKernel(const char* name = "kernel");

// Returns properties of physical memory on device 0.
CUmemAllocationProp OnDeviceZero();

}  // namespace sim

#endif  // TESTS_SIMCUDA_ON_DEVICE_H_
