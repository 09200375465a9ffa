// A program that loads the driver, prints the number of devices and allocates nothing. There is
// nothing to record, so the profiler must print no message.
//
// Usage: count_devices [--dlsym]
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
