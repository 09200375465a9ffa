// Makes GPU calls from threads with the smallest stack that POSIX permits: the process's first
// call, and one from each named library. The libraries are loaded and unloaded one after the other.

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "preload/testing/runtime.h"

namespace {

using Function = int (*)();

int Allocate() {
  void* ptr;
  return cudaMalloc(&ptr, 4099);
}

void* Call(void* function) {
  reinterpret_cast<Function>(function)();
  return nullptr;
}

bool CallOnSmallStack(void* function) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, Call, function) != 0) return false;
  return pthread_join(thread, nullptr) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (!CallOnSmallStack(reinterpret_cast<void*>(Allocate))) return 1;
  for (int i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW);
    void* function = library == nullptr ? nullptr : dlsym(library, "PluginAllocate");
    if (function == nullptr || !CallOnSmallStack(function) || dlclose(library) != 0) return 1;
  }
}
