#include "preload/real_function.h"

#include "preload/loader.h"
#include "preload/own_image.h"

namespace gmt::preload {
namespace {

// The library that a function lies in stays loaded from now on: hooks keep the address, and a module
// that brought a runtime with it may be unloaded.
void Keep(void* function) {
  Dl_info info;
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void* NotOwn(void* function) {
  if (InOwnImage(function)) return nullptr;
  Keep(function);
  return function;
}

// A search that fails on its way leaves its error for the program's next dlerror().
class ForgetLoaderErrors {
 public:
  ForgetLoaderErrors() = default;
  ~ForgetLoaderErrors() { dlerror(); }
  ForgetLoaderErrors(const ForgetLoaderErrors&) = delete;
  ForgetLoaderErrors& operator=(const ForgetLoaderErrors&) = delete;
};

// From a library that is loaded already; nothing is loaded for it.
void* FindIn(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* function = LibcDlsym(handle, name);
  LibcDlclose(handle);
  return NotOwn(function);
}

// Whether it is that of any runtime, and not of another library that stands in front of them.
bool IsARuntimes(const char* name, void* function) {
  for (const char* node : kRuntimeNodes) {
    if (LibcDlvsym(RTLD_NEXT, name, node) == function) return true;
  }
  return false;
}

}  // namespace

void* FindRuntimeFunction(const char* name, const char* node) {
  const ForgetLoaderErrors forget;
  void* next = NotOwn(LibcDlsym(RTLD_NEXT, name));
  if (next != nullptr && !IsARuntimes(name, next)) return next;
  void* function = FindVersionedFunction(name, node);
  return function != nullptr ? function : next;
}

void* FindVersionedFunction(const char* name, const char* node) {
  const ForgetLoaderErrors forget;
  void* function = NotOwn(LibcDlvsym(RTLD_NEXT, name, node));
  return function != nullptr ? function : FindIn(node, name);
}

void* FindDriverFunction(const char* name) {
  const ForgetLoaderErrors forget;
  void* function = NotOwn(LibcDlsym(RTLD_NEXT, name));
  return function != nullptr ? function : FindIn("libcuda.so.1", name);
}

}  // namespace gmt::preload
