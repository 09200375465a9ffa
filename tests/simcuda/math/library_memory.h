// Memory that NVIDIA's closed libraries take for themselves, unknown to PyTorch. Like the real
// ones, they make their calls through a runtime that is linked into the library, so that a profiler
// sees them only at the driver, with the library on the stack.
#ifndef TESTS_SIMCUDA_LIBRARY_MEMORY_H_
#define TESTS_SIMCUDA_LIBRARY_MEMORY_H_

#include <cuda.h>

#include <cstddef>

#include "tests/simcuda/runtime/cudart_api.h"
#include "tests/simcuda/settings.h"

namespace sim {

// Returns the settings, which each library reads for itself.
const Settings& LibrarySettings();

// The device memory of one handle: SIMCUDA_HANDLE bytes on the current device.
class HandleMemory {
 public:
  HandleMemory() = default;
  ~HandleMemory() { cudaFree(address_); }
  HandleMemory(const HandleMemory&) = delete;
  HandleMemory& operator=(const HandleMemory&) = delete;

  bool Allocate();

 private:
  void* address_ = nullptr;
};

// Returns memory created by cuMemCreate and mapped at its own address on the current device; null
// if the device has no room.
void* MapMemory(size_t size);

// REQUIRES: MapMemory() returned `address`.
CUresult UnmapMemory(void* address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_LIBRARY_MEMORY_H_
