#include "preload/loader/loader.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include <atomic>

#include "preload/loader/dynamic_symbols.h"
#include "preload/loader/own_image.h"

namespace gmt::preload {
namespace {

// Returns nullptr if the libc is not glibc.
const link_map* OwnLibrary() {
  Dl_info info;
  void* map = nullptr;
  if (&dladdr1 == nullptr) return nullptr;
  return dladdr1(__ehdr_start, &info, &map, RTLD_DL_LINKMAP) != 0 ? static_cast<link_map*>(map)
                                                                  : nullptr;
}

const char* FileName(const char* path) {
  const char* name = path;
  for (const char* p = path; *p != '\0'; ++p) {
    if (*p == '/') name = p + 1;
  }
  return name;
}

bool IsLibc(const link_map& library) {
  const char* name = FileName(library.l_name);
  return Same(name, "libc.so.6") || Same(name, "libdl.so.2");
}

// Searches in load order from `library` on, which at program start is the order of the global
// scope. Libraries loaded at program start are never unloaded, so no lock is needed up to libc.
void* FindFrom(const link_map* library, const char* name, bool only_libc) {
  for (; library != nullptr; library = library->l_next) {
    if (only_libc && !IsLibc(*library)) continue;
    void* function = DynamicSymbols(library->l_addr, library->l_ld).Find(name);
    if (function != nullptr && !InOwnImage(function)) return function;
  }
  return nullptr;
}

void* DefinedElsewhere(const dl_phdr_info& library, const char* name) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library.dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + header.p_vaddr);
    void* function = DynamicSymbols(library.dlpi_addr, dynamic).Find(name);
    if (function != nullptr && !InOwnImage(function)) return function;
  }
  return nullptr;
}

const link_map* First(const link_map* library) {
  while (library != nullptr && library->l_prev != nullptr) library = library->l_prev;
  return library;
}

bool StandsBeforeLibc(const link_map* library) {
  while (library != nullptr && !Same(FileName(library->l_name), "libc.so.6"))
    library = library->l_next;
  return library != nullptr;
}

// Searches all loaded libraries in the loader's order.
void* FindAnywhereElse(const char* name) {
  struct Search {
    const char* name;
    void* found;
  } search = {name, nullptr};
  const auto look = [](dl_phdr_info* library, size_t, void* argument) {
    auto* s = static_cast<Search*>(argument);
    s->found = DefinedElsewhere(*library, s->name);
    return s->found != nullptr ? 1 : 0;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

void* FindInLibc(const link_map* own, const char* name) {
  return own == nullptr ? FindAnywhereElse(name) : FindFrom(First(own), name, true);
}

// If this library was loaded late, no library after it provides what a program would reach.
void* FindNext(const link_map* own, const char* name) {
  if (own == nullptr) return FindAnywhereElse(name);
  const link_map* from = StandsBeforeLibc(own) ? own->l_next : First(own);
  void* next = FindFrom(from, name, false);
  return next != nullptr ? next : FindInLibc(own, name);
}

int DefinesElsewhere(dl_phdr_info* library, size_t, void* name) {
  return DefinedElsewhere(*library, static_cast<const char*>(name)) != nullptr ? 1 : 0;
}

int Needs(dl_phdr_info* library, size_t, void* name) {
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + header.p_vaddr);
    if (DynamicSymbols(library->dlpi_addr, dynamic).Needs(static_cast<const char*>(name))) return 1;
  }
  return 0;
}

// Caches the result of `find`.
template <typename Find>
void* Once(std::atomic<void*>* place, Find find) {
  void* function = place->load(std::memory_order_acquire);
  if (function == nullptr) {
    function = find();
    place->store(function, std::memory_order_release);
  }
  return function;
}

// Cache: functions of libc and of the next library.
constinit std::atomic<void*> libc_dlsym{nullptr}, libc_dlvsym{nullptr}, libc_dlclose{nullptr},
    next_dlsym{nullptr}, next_dlvsym{nullptr}, next_dlclose{nullptr}, next_dlopen{nullptr};

std::atomic<void*>* PlaceOfNext(const char* name) {
  return Same(name, "dlsym")    ? &next_dlsym
         : Same(name, "dlvsym") ? &next_dlvsym
         : Same(name, "dlopen") ? &next_dlopen
                                : &next_dlclose;
}

}  // namespace

// Not inlined, so that the real function sees this library as its caller.
__attribute__((noinline)) void* LibcDlsym(void* handle, const char* name) {
  void* real = Once(&libc_dlsym, [] { return FindInLibc(OwnLibrary(), "dlsym"); });
  return real == nullptr ? nullptr : reinterpret_cast<decltype(&::dlsym)>(real)(handle, name);
}

__attribute__((noinline)) void* LibcDlvsym(void* handle, const char* name, const char* version) {
  void* real = Once(&libc_dlvsym, [] { return FindInLibc(OwnLibrary(), "dlvsym"); });
  return real == nullptr ? nullptr
                         : reinterpret_cast<decltype(&::dlvsym)>(real)(handle, name, version);
}

void* OwnHandle() { return const_cast<link_map*>(OwnLibrary()); }

void LibcDlclose(void* handle) {
  void* real = Once(&libc_dlclose, [] { return FindInLibc(OwnLibrary(), "dlclose"); });
  if (real != nullptr) reinterpret_cast<decltype(&::dlclose)>(real)(handle);
}

void* NextLoaderFunction(const char* name) {
  return Once(PlaceOfNext(name), [name] { return FindNext(OwnLibrary(), name); });
}

bool LoadedAtStart() {
  const link_map* const own = OwnLibrary();
  return own == nullptr || StandsBeforeLibc(own);
}

void FindLoaderFunctions() {
  // Takes the loader's other lock, which must not be taken inside the list's lock.
  const link_map* const own = OwnLibrary();
  const auto find = [](dl_phdr_info*, size_t, void* argument) {
    const auto* library = static_cast<const link_map*>(argument);
    libc_dlsym.store(FindInLibc(library, "dlsym"), std::memory_order_release);
    libc_dlvsym.store(FindInLibc(library, "dlvsym"), std::memory_order_release);
    libc_dlclose.store(FindInLibc(library, "dlclose"), std::memory_order_release);
    for (const char* name : {"dlsym", "dlvsym", "dlopen", "dlclose"})
      PlaceOfNext(name)->store(FindNext(library, name), std::memory_order_release);
    return 1;
  };
  dl_iterate_phdr(find, const_cast<link_map*>(own));
}

bool DefinesFunction(void* function, const char* name) {
  Dl_info info;
  void* map = nullptr;
  if (&dladdr1 == nullptr || dladdr1(function, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr)
    return false;
  const auto* library = static_cast<const link_map*>(map);
  return DynamicSymbols(library->l_addr, library->l_ld).Find(name) != nullptr;
}

bool AnyLibraryIsNamed(const char* beginning) {
  const auto is_named = [](dl_phdr_info* library, size_t, void* argument) {
    const char* name = FileName(library->dlpi_name);
    for (const char* p = static_cast<const char*>(argument); *p != '\0'; ++p, ++name) {
      if (*name != *p) return 0;
    }
    return 1;
  };
  return dl_iterate_phdr(is_named, const_cast<char*>(beginning)) != 0;
}

bool AnyModuleIsLinkedTo(const char* library) {
  return dl_iterate_phdr(Needs, const_cast<char*>(library)) != 0;
}

bool DefinedByAnotherLibrary(const char* name) {
  return dl_iterate_phdr(DefinesElsewhere, const_cast<char*>(name)) != 0;
}

bool FindDefiner(const char* function, char* path, size_t capacity) {
  struct Search {
    const char* function;
    char* path;
    size_t capacity;
    bool fits;
  } search = {function, path, capacity, false};
  const auto visit = [](dl_phdr_info* library, size_t size, void* argument) {
    auto* s = static_cast<Search*>(argument);
    if (!DefinesElsewhere(library, size, const_cast<char*>(s->function))) return 0;
    const size_t length = strlen(library->dlpi_name);
    s->fits = length < s->capacity;
    if (s->fits) memcpy(s->path, library->dlpi_name, length + 1);
    return 1;
  };
  return dl_iterate_phdr(visit, &search) != 0 && search.fits;
}

}  // namespace gmt::preload
