// Repeatedly loads a module that contains the CUDA runtime, uses it and unloads it. Functions
// found in the first runtime must not be called in the second.
//
// Usage: unload MODULE TIMES    exit code 5
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    void* module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return std::printf("%s\n", dlerror()), 98;
    reinterpret_cast<void (*)()>(dlsym(module, "UseGpuFromPlugin"))();
    dlclose(module);
    // Load something else at its address.
    if (dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) return 97;
  }
  std::printf("done\n");
  return 5;
}
