// A program that does not use CUDA itself and opens plugins that do.
//
// Usage: plugin_host [--local | --deepbind] PLUGIN...
//   --local     as Python opens its extensions: only the plugin sees the libraries it links, so
//               RTLD_NEXT of a preloaded library does not find the plugin's runtime
//   --deepbind  the plugin prefers the libraries it links to preloaded ones
// Two plugins with different major versions of the runtime give a process with both.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "tests/programs/truth_log.h"

#ifdef BY_ADDRESS  // at fixed addresses: plugins get this program's PLT entries
#include <cuda_runtime_api.h>
__attribute__((used)) void* KnownAddress(bool free) {
  return free ? reinterpret_cast<void*>(&cudaFree) : reinterpret_cast<void*>(&cudaMalloc);
}
#endif

int main(int argc, char** argv) {
  int flags = RTLD_NOW | RTLD_LOCAL;
  TruthLog truth;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--local") == 0) continue;
    if (std::strcmp(argv[i], "--deepbind") == 0) {
      flags |= RTLD_DEEPBIND;
      continue;
    }
    void* plugin = dlopen(argv[i], flags);
    auto run = plugin == nullptr
                   ? nullptr
                   : reinterpret_cast<void (*)(TruthLog*)>(dlsym(plugin, "RunPlugin"));
    if (run == nullptr) {
      std::fprintf(stderr, "plugin_host: %s\n", dlerror());
      return 2;
    }
    run(&truth);
  }
  return truth.Finish();
}
