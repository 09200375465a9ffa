// The functions to which CUPTI assigns ids, from its public headers.
#ifndef TESTS_SIMCUDA_CUPTI_NAMES_H_
#define TESTS_SIMCUDA_CUPTI_NAMES_H_

#include <cstdint>

namespace sim {

// Return the id of an exported function of the driver or the runtime (among several forms, that of
// the oldest), or 0 if it has none.
uint32_t DriverFunctionId(const char* name);
uint32_t RuntimeFunctionId(const char* name);

// Return CUPTI's name, such as cuMemAlloc_v2 or cudaMalloc_v3020; null if there is no such id.
const char* DriverFunctionName(uint32_t id);
const char* RuntimeFunctionName(uint32_t id);

}  // namespace sim

#endif  // TESTS_SIMCUDA_CUPTI_NAMES_H_
