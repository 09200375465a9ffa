#include "collector/inject/loader_functions.h"

#include <dlfcn.h>

#include <algorithm>

namespace gmt::inject {
namespace {

constexpr uint64_t kCalledByLibc = 0x80000000;  // __RTLD_DLOPEN of glibc's dlfcn.h

std::optional<RemoteImage> ImageOf(const RemoteMemory& memory, const MemoryMap& map,
                                   bool (*is_it)(const Mapping&)) {
  const auto it = std::find_if(map.begin(), map.end(),
                               [&](const Mapping& m) { return is_it(m) && m.offset == 0; });
  if (it == map.end()) return std::nullopt;
  return RemoteImage::At(memory, it->start);
}

bool IsLibdl(const Mapping& m) {
  return m.Name() == "libdl.so.2" || m.Name().starts_with("libdl-2.");
}

// Stores the image's functions in `functions`. Returns false if it does not have them.
bool Take(const RemoteImage& image, const char* open, const char* find, const char* error,
          LoaderFunctions* functions) {
  const uint64_t dlopen = image.FindFunction(open), dlsym = image.FindFunction(find);
  if (dlopen == 0 || dlsym == 0) return false;
  functions->dlopen = dlopen;
  functions->dlsym = dlsym;
  functions->dlerror = error == nullptr ? 0 : image.FindFunction(error);
  return true;
}

}  // namespace

std::optional<RemoteImage> FindLibc(const RemoteMemory& memory, const MemoryMap& map) {
  return ImageOf(memory, map, IsLibc);
}

LoaderFunctions FindLoaderFunctions(const RemoteMemory& memory, const MemoryMap& map,
                                    const RemoteImage& libc) {
  LoaderFunctions f;
  f.errno_location = libc.FindFunction("__errno_location");
  f.mode = RTLD_NOW | RTLD_LOCAL;
  if (Take(libc, "dlopen", "dlsym", "dlerror", &f)) return f;
  const std::optional<RemoteImage> libdl = ImageOf(memory, map, IsLibdl);
  if (libdl.has_value() && Take(*libdl, "dlopen", "dlsym", "dlerror", &f)) return f;
  if (Take(libc, "__libc_dlopen_mode", "__libc_dlsym", nullptr, &f)) f.mode |= kCalledByLibc;
  return f;
}

}  // namespace gmt::inject
