// A program that knows nothing of CUDA and opens plugins that do.
//
// Usage: plugin_host [--local | --deepbind] PLUGIN...
//   --local     as Python opens its extensions: what a plugin links is seen by that plugin only, so
//               RTLD_NEXT of a preloaded library does not find its runtime
//   --deepbind  the plugin prefers what it links to anything preloaded
// Two plugins with different majors of the runtime make a process that has both.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "tests/programs/told.h"

#ifdef BY_ADDRESS  // a program at fixed addresses: its entries of these are what the plugin gets
#include <cuda_runtime_api.h>
__attribute__((used)) void* KnownAddress(bool free) {
  return free ? reinterpret_cast<void*>(&cudaFree) : reinterpret_cast<void*>(&cudaMalloc);
}
#endif

int main(int argc, char** argv) {
  int flags = RTLD_NOW | RTLD_LOCAL;
  Told told;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--local") == 0) continue;
    if (std::strcmp(argv[i], "--deepbind") == 0) {
      flags |= RTLD_DEEPBIND;
      continue;
    }
    void* plugin = dlopen(argv[i], flags);
    auto run =
        plugin == nullptr ? nullptr : reinterpret_cast<void (*)(Told*)>(dlsym(plugin, "RunPlugin"));
    if (run == nullptr) {
      std::fprintf(stderr, "plugin_host: %s\n", dlerror());
      return 2;
    }
    run(&told);
  }
  return told.Finish();
}
