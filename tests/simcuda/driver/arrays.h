// Array sizes and levels, for the functions that create arrays from other memory.
#ifndef TESTS_SIMCUDA_DRIVER_ARRAYS_H_
#define TESTS_SIMCUDA_DRIVER_ARRAYS_H_

#include <cstdint>

#include "tests/simcuda/simulator.h"

namespace sim {

// Returns width times height times depth times element size; 0 for arrays without memory.
uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& descriptor);

// Creates the levels of a mipmapped array.
CUresult MakeMipmapped(CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR_v2& descriptor,
                       unsigned int levels);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DRIVER_ARRAYS_H_
