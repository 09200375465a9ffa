// A library with its own copy of NVTX.

#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) void MarkFromLibrary() {
  nvtxMarkA("of the library");
}
