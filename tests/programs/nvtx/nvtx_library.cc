// A library with a copy of NVTX of its own.

#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) void MarkFromLibrary() {
  nvtxMarkA("of the library");
}
