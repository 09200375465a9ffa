#include "preload/loader/real_function.h"

#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"

namespace gmt::preload {
namespace {

void* NotOwn(void* function) {
  if (InOwnImage(function)) return nullptr;
  KeepLoaded(function);
  return function;
}

// Discards the errors of lookups that failed, so that the program's next dlerror() does not see
// them.
class ForgetLoaderErrors {
 public:
  ForgetLoaderErrors() = default;
  ~ForgetLoaderErrors() { dlerror(); }
  ForgetLoaderErrors(const ForgetLoaderErrors&) = delete;
  ForgetLoaderErrors& operator=(const ForgetLoaderErrors&) = delete;
};

// Finds a function in a library that is already loaded; loads nothing.
void* FindIn(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* function = LibcDlsym(handle, name);
  LibcDlclose(handle);
  return NotOwn(function);
}

// Where the loader begins its search: after this library or, if it was opened late and nothing
// follows it, at the program.
void* Scope() { return LoadedAtStart() ? RTLD_NEXT : RTLD_DEFAULT; }

void* Defined(void* function, const char* name) {
  if (function == nullptr) return nullptr;
  return LoadedAtStart() || DefinesFunction(function, name) ? NotOwn(function) : nullptr;
}

void* FindInScope(void* scope, const char* name) { return Defined(LibcDlsym(scope, name), name); }

// Returns whether the function belongs to a runtime, rather than to another library that precedes
// the runtimes.
bool BelongsToRuntime(void* scope, const char* name, void* function) {
  for (const char* node : kRuntimeNodes) {
    if (LibcDlvsym(scope, name, node) == function) return true;
  }
  return false;
}

}  // namespace

void KeepLoaded(void* function) {
  Dl_info info;
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fname == nullptr) return;
  dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void* FindRuntimeFunction(const char* name, const char* node) {
  const ForgetLoaderErrors forget;
  void* const scope = Scope();
  void* next = FindInScope(scope, name);
  if (next != nullptr && !BelongsToRuntime(scope, name, next)) return next;
  void* function = FindVersionedFunction(name, node);
  return function != nullptr ? function : next;
}

void* FindVersionedFunction(const char* name, const char* node) {
  const ForgetLoaderErrors forget;
  void* function = Defined(LibcDlvsym(Scope(), name, node), name);
  return function != nullptr ? function : FindIn(node, name);
}

void* FindDriverFunction(const char* name) {
  const ForgetLoaderErrors forget;
  void* function = FindInScope(Scope(), name);
  return function != nullptr ? function : FindIn("libcuda.so.1", name);
}

}  // namespace gmt::preload
