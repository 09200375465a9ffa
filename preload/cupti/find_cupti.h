// preload/cupti/find_cupti.h
//
// Selects the libcupti to use. In this order:
//
//   1. one that is already loaded in the process, by its SONAME
//   2. the file that GPUMEMTRACE_CUPTI names
//   3. beside the CUDA runtime that the process has loaded: in its directory (the toolkit, NVIDIA's
//      packages for CUDA 13), in ../../cuda_cupti/lib (those for CUDA 12), in ../../cupti/lib, in
//      extras/CUPTI/lib64 of its toolkit
//   4. by the loader's search path
//
// Among several versions, that of the loaded runtime is preferred, then the driver's, then older
// ones. A version newer than the driver is never used, because the driver rejects it with an error.
//
// A library that is loaded here stays loaded, and later libraries of the process that are linked
// with this SONAME get it. Therefore one that lacks symbols that PyTorch's libraries need is not
// used: a later `import torch` would fail.
//
// These functions take the loader's lock.

#ifndef GMT_PRELOAD_CUPTI_FIND_CUPTI_H_
#define GMT_PRELOAD_CUPTI_FIND_CUPTI_H_

#include "preload/cupti/cupti_library.h"

namespace gmt::preload {

inline constexpr unsigned kOldestCupti = 12, kNewestCupti = 13;

// Returns false, with the reason, if there is none to use.
bool FindCupti(CuptiLibrary* library, char* reason, size_t capacity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_FIND_CUPTI_H_
