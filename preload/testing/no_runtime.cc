// A process without CUDA that finds our hook where a runtime function should be. The hook has
// nothing to call and says so. Prints the error code.

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int main() {
  using Malloc = int (*)(void**, size_t);
  const auto hook = reinterpret_cast<Malloc>(dlsym(RTLD_DEFAULT, "cudaMalloc"));
  void* ptr = nullptr;
  printf("%d\n", hook == nullptr ? -1 : hook(&ptr, 100));
}
