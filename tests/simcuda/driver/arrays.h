// What arrays are made of, for the functions that make them out of other memory.
#ifndef TESTS_SIMCUDA_DRIVER_ARRAYS_H_
#define TESTS_SIMCUDA_DRIVER_ARRAYS_H_

#include <cstdint>

#include "tests/simcuda/simulator.h"

namespace sim {

// Width times height times depth times bytes of an element; 0 for arrays without memory.
uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& descriptor);

// Gives a mipmapped array its levels.
CUresult MakeMipmapped(CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR_v2& descriptor,
                       unsigned int levels);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DRIVER_ARRAYS_H_
