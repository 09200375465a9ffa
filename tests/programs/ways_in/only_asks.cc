// A program that has the driver in memory and allocates nothing: how many devices there are is all
// that many ever ask. There is nothing to record, and nothing to say.
//
// Usage: only_asks [--dlsym]    prints the number of devices
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDeviceGetCount) get_count = nullptr;
#ifdef LINKED
  init = cuInit;
  get_count = cuDeviceGetCount;
#endif
  if (argc > 1 && std::strcmp(argv[1], "--dlsym") == 0) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    init = reinterpret_cast<decltype(init)>(dlsym(driver, "cuInit"));
    get_count = reinterpret_cast<decltype(get_count)>(dlsym(driver, "cuDeviceGetCount"));
  }
  int count = 0;
  if (init == nullptr || init(0) != CUDA_SUCCESS || get_count(&count) != CUDA_SUCCESS) return 1;
  std::printf("%d\n", count);
}
