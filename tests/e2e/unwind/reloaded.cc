// Loads a library that calls back, unloads it, and does the same with another one, which is loaded
// at the same addresses and has frames of another size there: what was known about the first must
// not be applied to the second. Prints how often the second was really loaded at the first's
// address.
//
// Without the library that has CheckStack() it allocates device memory in the callbacks instead.
//
// Usage: reloaded FIRST SECOND ROUNDS
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((weak)) void CheckStack();

namespace {

__attribute__((noinline)) void Check() {
  if (CheckStack != nullptr) return CheckStack();
  void* memory;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) std::exit(3);
  cudaFree(memory);
}

void* CallFrom(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    std::exit(98);
  }
  void* function = dlsym(library, "CallFromPlugin");
  for (int i = 0; i < 3; ++i) reinterpret_cast<void (*)(void (*)())>(function)(Check);
  dlclose(library);
  return function;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int same_place = 0;
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    void* const first = CallFrom(argv[1]);
    if (CallFrom(argv[2]) == first) ++same_place;
  }
  std::printf("same place %d\n", same_place);
  return 0;
}
