// A process without CUDA that checks in the usual ways whether CUDA is present. A weak reference
// finds our hook, which has no function to call and returns an error; lookups find nothing. Prints
// the results.
//   usage: no_runtime [LIBRARY...]    loaded globally first

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

extern "C" __attribute__((weak)) int cudaMalloc(void** ptr, size_t size);
extern "C" __attribute__((weak)) int cuptiFinalize();

namespace {
const char* Found(void* function) { return function == nullptr ? "nothing" : "something"; }
}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    if (dlopen(arguments[i], RTLD_NOW | RTLD_GLOBAL) == nullptr) return puts(dlerror()), 1;
  }
  void* ptr = nullptr;
  printf("weak %d %d\n", cudaMalloc == nullptr ? -1 : cudaMalloc(&ptr, 100),
         cuptiFinalize == nullptr ? -1 : cuptiFinalize());
  printf("default cupti %s\n", Found(dlsym(RTLD_DEFAULT, "cuptiSubscribe")));
  printf("program cupti %s\n", Found(dlsym(dlopen(nullptr, RTLD_LAZY), "cuptiActivityEnable")));
  printf("default %s\n", Found(dlsym(RTLD_DEFAULT, "cudaMalloc")));
  printf("program %s\n", Found(dlsym(dlopen(nullptr, RTLD_LAZY), "cuMemAlloc_v2")));
  printf("versioned %s\n", Found(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13")));
  printf("next %s\n", Found(dlsym(RTLD_NEXT, "cudaFree")));
  printf("error %s\n", dlerror() == nullptr ? "missing" : "said");
  printf("libc %s\n", Found(dlsym(RTLD_DEFAULT, "strlen")));
}
