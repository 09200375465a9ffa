// preload/cupti/find_cupti.h
//
// Which libcupti is taken. In this order:
//
//   1. one that is in the process already, by its SONAME
//   2. the file that GPUMEMTRACE_CUPTI names
//   3. beside the CUDA runtime that the process has loaded: in its directory (the toolkit, NVIDIA's
//      packages for CUDA 13), in ../../cuda_cupti/lib (those for CUDA 12), in ../../cupti/lib, in
//      extras/CUPTI/lib64 of its toolkit
//   4. where the loader finds it
//
// Of two versions that of the loaded runtime comes first, then the driver's, then older ones; never
// one that is newer than the driver, which answers that with an error.
//
// What is loaded here stays, and is what later libraries of the process get that are linked to this
// SONAME. So one that lacks what PyTorch's are linked to is not taken: a later `import torch` would
// fail.
//
// These functions take the loader's lock.

#ifndef GMT_PRELOAD_CUPTI_FIND_CUPTI_H_
#define GMT_PRELOAD_CUPTI_FIND_CUPTI_H_

#include "preload/cupti/cupti_library.h"

namespace gmt::preload {

inline constexpr unsigned kOldestCupti = 12, kNewestCupti = 13;

// False, with the reason, where there is none to take.
bool FindCupti(CuptiLibrary* library, char* reason, size_t capacity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_FIND_CUPTI_H_
