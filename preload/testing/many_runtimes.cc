// Loads more runtimes than there are hooks for looked-up pointers.
//   usage: many_runtimes RUNTIME...
// Looks up cudaMalloc in each, before any call of it, and then calls all functions found.

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int main(int count, char** runtimes) {
  constexpr int kMost = 16;
  int (*found[kMost])(void**, size_t) = {};
  for (int i = 1; i < count && i < kMost; ++i) {
    void* runtime = dlopen(runtimes[i], RTLD_NOW | RTLD_LOCAL);
    if (runtime == nullptr) return puts(dlerror()), 1;
    found[i] = reinterpret_cast<int (*)(void**, size_t)>(dlsym(runtime, "cudaMalloc"));
  }
  for (int i = 1; i < count && i < kMost; ++i) {
    void* ptr;
    if (found[i](&ptr, 1000) != 0) return 1;
  }
}
