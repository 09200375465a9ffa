// Prints results and errors of dlclose: for a library that another handle keeps open, one that is
// unloaded, one that cannot be unloaded, one that is not open, and with an error pending. The
// output must be the same under the profiler, which exports dlclose.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

void Close(const char* what, void* handle) {
  errno = 1234;
  const int result = dlclose(handle);
  const int error = errno;
  const char* message = dlerror();
  std::printf("%s: %d, errno %d, %s\n", what, result, error, message == nullptr ? "-" : message);
}

void* Open(const char* name, int flags) {
  void* handle = dlopen(name, flags);
  std::printf("%s: %s\n", name == nullptr ? "the program" : name,
              handle != nullptr ? "open" : dlerror());
  return handle;
}

bool IsLoaded(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != nullptr; }

}  // namespace

int main() {
  const char* name = "libutil.so.1";
  for (const int flags : {RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_GLOBAL}) {
    void* memory;
    if (cudaMalloc(&memory, 4096) != cudaSuccess) return 3;
    void* first = Open(name, flags);
    void* second = Open(name, flags);
    Close("held by another", first);
    Close("the last", second);
    std::printf("loaded: %d\n", IsLoaded(name) ? 1 : 0);
    cudaFree(memory);
  }
  void* kept = Open("libresolv.so.2", RTLD_NOW | RTLD_NODELETE);
  Close("never unloaded", kept);
  void* libc = Open("libc.so.6", RTLD_NOW);
  Close("of the program's own", libc);
  Close("not open any more", libc);
  void* program = Open(nullptr, RTLD_NOW);
  Close("the program", program);
  dlsym(RTLD_DEFAULT, "no function has this name");
  Close("with an error pending", Open("libutil.so.1", RTLD_NOW));
  return 0;
}
