// A program that opens the runtime by name and looks every function up, as ctypes and other
// bindings do.
//
// Usage: looked_up [--version NODE] [--default]
//   --version  looks up with dlvsym, using that version node
//   --default  looks up in RTLD_DEFAULT, after opening the runtime with RTLD_GLOBAL
#include <dlfcn.h>

#include <cstring>

#include "tests/programs/linkage/call_sequences.h"

int main(int argc, char** argv) {
  const char* version = nullptr;
  bool global = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--default") == 0) global = true;
    if (std::strcmp(argv[i], "--version") == 0 && i + 1 < argc) version = argv[++i];
  }
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (runtime == nullptr) {
    std::fprintf(stderr, "looked_up: %s\n", dlerror());
    return 2;
  }
  void* handle = global ? RTLD_DEFAULT : runtime;
  Runtime cuda;
  TruthLog truth;
  if (!cuda.Load([&](const char* name) {
        return version != nullptr ? dlvsym(handle, name, version) : dlsym(handle, name);
      })) {
    return 2;
  }
  RunCalls(cuda, truth);
  return truth.Finish();
}
