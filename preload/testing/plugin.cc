// The plugin of local_runtime.

#include "preload/testing/runtime.h"

extern "C" __attribute__((visibility("default"))) int PluginAllocate() {
  void* ptr;
  return cudaMalloc(&ptr, 424242);
}
