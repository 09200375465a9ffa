// What the simulated libraries that stand beside the driver (NVML) and the tests ask the driver
// for, through cuGetExportTable, the way NVIDIA's own libraries reach private interfaces.
#ifndef TESTS_SIMCUDA_EXPORT_TABLE_H_
#define TESTS_SIMCUDA_EXPORT_TABLE_H_

#include <cstdint>

#include "tests/simcuda/cuda_api.h"

namespace sim {

struct MemoryUse {
  uint64_t total;
  uint64_t used;     // by this process
  uint64_t foreign;  // by others
};

struct ExportTable {
  CUresult (*memory_use)(int device, MemoryUse* use);
};

inline constexpr CUuuid kExportTableId = {
    {'s', 'i', 'm', 'c', 'u', 'd', 'a', '-', 't', 'a', 'b', 'l', 'e', '-', '0', '1'}};

}  // namespace sim

#endif  // TESTS_SIMCUDA_EXPORT_TABLE_H_
