// OnDevice: runs a test's body in a child process with a simulated device of its own. The device
// reads its settings once per process, so a test that wants other settings needs another process.
#ifndef TESTS_SIMCUDA_ON_DEVICE_H_
#define TESTS_SIMCUDA_ON_DEVICE_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sim {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// `settings`: environment variables for the child. `body` runs with the primary context of device 0
// current; gtest assertions in it count for the calling test.
void OnDevice(const std::map<std::string, std::string>& settings,
              const std::function<void()>& body);

// The same, before cuInit and without a context.
void InFreshProcess(const std::map<std::string, std::string>& settings,
                    const std::function<void()>& body);

// Bytes that cuMemGetInfo calls free.
uint64_t FreeMemory();

// A kernel of that name, from a module that stays loaded.
CUfunction LoadKernel(const char* name = "kernel");

// Properties of physical memory on device 0.
CUmemAllocationProp OnDeviceZero();

}  // namespace sim

#endif  // TESTS_SIMCUDA_ON_DEVICE_H_
