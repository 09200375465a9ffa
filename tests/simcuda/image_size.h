// Bytes of a module's image, which no caller states: CUDA finds them in the image itself.
#ifndef TESTS_SIMCUDA_IMAGE_SIZE_H_
#define TESTS_SIMCUDA_IMAGE_SIZE_H_

#include <cstdint>

namespace sim {

// `image` is a cubin (an ELF file), a fat binary, the wrapper that nvcc puts around one, or PTX text
// with its comment or .version first. 0 for null and for anything else.
uint64_t ImageSize(const void* image);

}  // namespace sim

#endif  // TESTS_SIMCUDA_IMAGE_SIZE_H_
