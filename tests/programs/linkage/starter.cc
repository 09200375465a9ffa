// A library to preload that opens the profiler's library, as gpumemtrace.start() does, in a program
// that does not know it: before main() begins, or when the program calls AtMoment.
//
//   STARTER_LIBRARY   the profiler's library
//   STARTER_AT        "moment": start when the program calls AtMoment (call_sequences.h)
//   STARTER_OUTPUT    a file to which the result and the text of gpumemtrace_start are appended
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void Start() {
  const char* path = std::getenv("STARTER_LIBRARY");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "starter: %s\n", path == nullptr ? "STARTER_LIBRARY?" : dlerror());
    std::_Exit(3);
  }
  auto start = reinterpret_cast<int (*)(char*, size_t)>(dlsym(library, "gpumemtrace_start"));
  char text[4096] = "";
  int result = start == nullptr ? -2 : start(text, sizeof(text));
  const char* output = std::getenv("STARTER_OUTPUT");
  FILE* file = output == nullptr ? nullptr : std::fopen(output, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%d %s\n", result, text);
  std::fclose(file);
}

bool AtOnce() {
  const char* at = std::getenv("STARTER_AT");
  return at == nullptr || std::strcmp(at, "moment") != 0;
}

__attribute__((constructor)) void StartAtOnce() {
  if (AtOnce()) Start();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void AtMoment() {
  static std::atomic<bool> started{false};
  if (!AtOnce() && !started.exchange(true)) Start();
}
