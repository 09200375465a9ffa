// The size of a module's image, which no caller passes: CUDA determines it from the image itself.
#ifndef TESTS_SIMCUDA_IMAGE_SIZE_H_
#define TESTS_SIMCUDA_IMAGE_SIZE_H_

#include <cstdint>

namespace sim {

// `image` is a cubin (an ELF file), a fat binary, nvcc's wrapper around one, or PTX text that
// begins with its comment or .version. Returns 0 for null and for anything else.
uint64_t ImageSize(const void* image);

}  // namespace sim

#endif  // TESTS_SIMCUDA_IMAGE_SIZE_H_
