// A runtime that a plugin loads with RTLD_LOCAL is not in the global scope, which RTLD_NEXT
// searches.
//   usage: local_runtime RUNTIME PLUGIN
// The plugin is linked with the runtime and calls cudaMalloc. Prints the result.

#include <dlfcn.h>
#include <stdio.h>

int main(int, char** argv) {
  if (dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == nullptr) return puts(dlerror()), 1;
  void* plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return puts(dlerror()), 1;
  const auto allocate = reinterpret_cast<int (*)()>(dlsym(plugin, "PluginAllocate"));
  printf("%d\n", allocate());
}
