#include "preload/torch/torch_function.h"

#include <limits.h>

#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

constexpr const char* kNames[] = {
#define GMT_TORCH(name, mangled, result, parameters, arguments) mangled,
#include "preload/torch/hook_table.inc"
    "_ZN3c104cuda20getCurrentCUDAStreamEa",
    "_ZNK3c104cuda10CUDAStream6streamEv",
    "_ZN2at14RecordFunction15currentThreadIdEv",
};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<int>(TorchFunction::kCount));

// Looks in the loaded library of that path and in the libraries it was linked with.
void* FindFrom(const char* path, const char* name) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) return nullptr;  // as a handle, nullptr would mean the whole program
  void* function = LibcDlsym(library, name);
  LibcDlclose(library);
  return InOwnImage(function) ? nullptr : function;
}

}  // namespace

namespace internal_torch_function {

// Cache: functions of PyTorch.
constinit std::atomic<void*> found[static_cast<int>(TorchFunction::kCount)];

[[gnu::noinline, gnu::cold]] void* Search(TorchFunction wanted, const void* caller) {
  const KeepErrno keep;
  const char* const name = kNames[static_cast<int>(wanted)];
  void* function = nullptr;
  Dl_info info;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr)
    function = FindFrom(info.dli_fname, name);
  char definer[PATH_MAX];
  if (function == nullptr && FindDefiner(name, definer, sizeof(definer)))
    function = FindFrom(definer, name);
  dlerror();  // discards the error of a failed lookup
  found[static_cast<int>(wanted)].store(function, std::memory_order_release);
  return function;
}

}  // namespace internal_torch_function
}  // namespace gmt::preload
