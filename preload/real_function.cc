#include "preload/real_function.h"

#include "preload/loader.h"
#include "preload/own_image.h"

namespace gmt::preload {
namespace {

void* NotOwn(void* function) { return InOwnImage(function) ? nullptr : function; }

// From a library that is loaded already; nothing is loaded for it.
void* FindIn(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* function = dlsym(handle, name);
  dlclose(handle);
  return NotOwn(function);
}

}  // namespace

void* FindRuntimeFunction(const char* name, const char* node) {
  void* function = NotOwn(dlvsym(RTLD_NEXT, name, node));
  if (function == nullptr) function = FindIn(node, name);
  if (function == nullptr) function = NotOwn(dlsym(RTLD_NEXT, name));
  return function;
}

void* FindDriverFunction(const char* name) {
  void* function = NotOwn(dlsym(RTLD_NEXT, name));
  return function != nullptr ? function : FindIn("libcuda.so.1", name);
}

}  // namespace gmt::preload
