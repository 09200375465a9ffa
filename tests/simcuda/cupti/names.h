// The functions that CUPTI gives numbers to, out of its public headers.
#ifndef TESTS_SIMCUDA_CUPTI_NAMES_H_
#define TESTS_SIMCUDA_CUPTI_NAMES_H_

#include <cstdint>

namespace sim {

// The number of an exported function of the driver, or of the runtime: of several forms the oldest.
// 0 when it has none.
uint32_t DriverFunctionId(const char* name);
uint32_t RuntimeFunctionId(const char* name);

// As CUPTI calls it: cuMemAlloc_v2, cudaMalloc_v3020. Null when there is no such number.
const char* DriverFunctionName(uint32_t id);
const char* RuntimeFunctionName(uint32_t id);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_NAMES_H_
