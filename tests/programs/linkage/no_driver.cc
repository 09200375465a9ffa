// Probes for CUDA as programs do: by looking names up and by a weak reference.
//
// Prints one line per probe. On a machine without CUDA, a profiler must not change the results.
// Only the weak reference cannot be avoided: its function reports that the runtime is missing.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

extern "C" __attribute__((weak)) int cudaMalloc(void** pointer, size_t size);

namespace {

void Probe(const char* where, void* handle, const char* name, const char* version) {
  dlerror();
  void* found = version != nullptr ? dlvsym(handle, name, version) : dlsym(handle, name);
  const char* error = dlerror();
  std::printf("%s %s%s%s: %s, dlerror %s\n", where, name, version != nullptr ? "@" : "",
              version != nullptr ? version : "", found != nullptr ? "found" : "not found",
              error != nullptr ? "set" : "not set");
}

}  // namespace

int main() {
  void* program = dlopen(nullptr, RTLD_NOW);
  const char* names[] = {"cudaMalloc", "cudaFreeAsync",       "cuMemAlloc_v2",
                         "cuInit",     "cuGetProcAddress_v2", "cudaGetDriverEntryPoint"};
  for (const char* name : names) {
    Probe("RTLD_DEFAULT", RTLD_DEFAULT, name, nullptr);
    Probe("RTLD_NEXT", RTLD_NEXT, name, nullptr);
    Probe("the program", program, name, nullptr);
  }
  Probe("RTLD_DEFAULT", RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13");
  Probe("the program", program, "cudaMalloc", "libcudart.so.12");
  Probe("RTLD_DEFAULT", RTLD_DEFAULT, "strlen", nullptr);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  std::printf("libcuda.so.1: %s\n", driver != nullptr ? "found" : "not found");
  void* pointer = nullptr;
  int result = cudaMalloc != nullptr ? cudaMalloc(&pointer, 1) : -1;
  std::printf("weak cudaMalloc: %s\n", result == -1    ? "absent"
                                       : result == 302 ? "returns an error"
                                                       : "present");
}
