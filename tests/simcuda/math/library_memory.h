// What NVIDIA's closed libraries take for themselves, without PyTorch's knowledge. As in the real
// ones, the calls come out of a runtime that is linked into the library, so that a profiler meets
// them at the driver only, with the library on the stack.
#ifndef TESTS_SIMCUDA_LIBRARY_MEMORY_H_
#define TESTS_SIMCUDA_LIBRARY_MEMORY_H_

#include <cuda.h>

#include <cstddef>

#include "tests/simcuda/runtime/cudart_api.h"
#include "tests/simcuda/settings.h"

namespace sim {

// The settings, read by each library for itself.
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

// Memory made by cuMemCreate and mapped at an address of its own, on the current device. Null when
// the device has no room.
void* MapMemory(size_t size);

// REQUIRES: MapMemory() returned `address`.
CUresult UnmapMemory(void* address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_LIBRARY_MEMORY_H_
