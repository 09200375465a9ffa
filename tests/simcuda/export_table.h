// The interface through which the libraries beside the driver (NVML, CUPTI), the runtime and the
// tests query the driver: cuGetExportTable, as NVIDIA's own libraries access private interfaces.
#ifndef TESTS_SIMCUDA_EXPORT_TABLE_H_
#define TESTS_SIMCUDA_EXPORT_TABLE_H_

#include <cstdint>

#include "tests/simcuda/cuda_api.h"
#include "tests/simcuda/tools.h"

namespace sim {

struct MemoryUse {
  uint64_t total;
  uint64_t used;     // by this process
  uint64_t foreign;  // by others
};

struct ProcessUse {
  int pid;
  uint64_t bytes;
};

struct ExportTable {
  CUresult (*memory_use)(int device, MemoryUse* use);
  // Stores at most `room` of the processes that hold memory, this one first, and their total
  // number.
  CUresult (*processes)(int device, ProcessUse* list, unsigned int room, unsigned int* count);
  const ToolTable* tools;
};

inline constexpr CUuuid kExportTableId = {
    {'s', 'i', 'm', 'c', 'u', 'd', 'a', '-', 't', 'a', 'b', 'l', 'e', '-', '0', '1'}};

}  // namespace sim

#endif  // TESTS_SIMCUDA_EXPORT_TABLE_H_
