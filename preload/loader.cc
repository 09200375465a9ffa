#include "preload/loader.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include <atomic>

#include "preload/own_image.h"

namespace gmt::preload {
namespace {

// Not strcmp: sanitizers stand in front of libc's functions of strings and look those up through
// our dlsym while they start, when theirs have nothing to call yet.
bool Same(const char* a, const char* b) {
  for (; *a == *b; ++a, ++b) {
    if (*a == '\0') return true;
  }
  return false;
}

constexpr uint16_t kHiddenVersion = 0x8000;  // of an entry of the version table: not the default

// The dynamic symbols of one library, as the loader has mapped and relocated them.
class DynamicSymbols {
 public:
  DynamicSymbols(uint64_t base, const ElfW(Dyn) * dynamic) : base_(base), dynamic_(dynamic) {
    for (const ElfW(Dyn)* d = dynamic; d->d_tag != DT_NULL; ++d) {
      const uint64_t address = d->d_un.d_ptr < base_ ? base_ + d->d_un.d_ptr : d->d_un.d_ptr;
      if (d->d_tag == DT_GNU_HASH) hash_ = reinterpret_cast<const uint32_t*>(address);
      if (d->d_tag == DT_HASH) old_hash_ = reinterpret_cast<const uint32_t*>(address);
      if (d->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
      if (d->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(address);
      if (d->d_tag == DT_VERSYM) versions_ = reinterpret_cast<const uint16_t*>(address);
    }
  }

  // The function of that name, the default version where there are several.
  void* Find(const char* name) const {
    if (symbols_ == nullptr || strings_ == nullptr) return nullptr;
    return hash_ != nullptr       ? FindByGnuHash(name)
           : old_hash_ != nullptr ? FindByOldHash(name)
                                  : nullptr;
  }

  // Whether it is linked to the library of that SONAME.
  bool Needs(const char* library) const {
    for (const ElfW(Dyn)* d = dynamic_; strings_ != nullptr && d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == DT_NEEDED && Same(strings_ + d->d_un.d_val, library)) return true;
    }
    return false;
  }

 private:
  // The layout: binutils, "GNU Hash ELF Sections".
  void* FindByGnuHash(const char* name) const {
    const uint32_t bucket_count = hash_[0], first_symbol = hash_[1], filter_words = hash_[2];
    if (bucket_count == 0) return nullptr;
    const uint32_t* buckets = hash_ + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chains = buckets + bucket_count;
    const uint32_t wanted = GnuHash(name);
    uint32_t i = buckets[wanted % bucket_count];
    void* found = nullptr;
    for (; i >= first_symbol; ++i) {
      const uint32_t hash = chains[i - first_symbol];
      if ((hash | 1) == (wanted | 1) && Defines(i, name)) {
        found = Address(i);
        if (IsDefault(i)) break;
      }
      if ((hash & 1) != 0) break;
    }
    return found;
  }

  // The layout: System V ABI, "Hash Table".
  void* FindByOldHash(const char* name) const {
    const uint32_t bucket_count = old_hash_[0];
    if (bucket_count == 0) return nullptr;
    const uint32_t* buckets = old_hash_ + 2;
    const uint32_t* chains = buckets + bucket_count;
    void* found = nullptr;
    for (uint32_t i = buckets[OldHash(name) % bucket_count]; i != STN_UNDEF; i = chains[i]) {
      if (!Defines(i, name)) continue;
      found = Address(i);
      if (IsDefault(i)) break;
    }
    return found;
  }

  static uint32_t GnuHash(const char* name) {
    uint32_t h = 5381;
    for (; *name != '\0'; ++name) h = h * 33 + static_cast<unsigned char>(*name);
    return h;
  }
  static uint32_t OldHash(const char* name) {
    uint32_t h = 0;
    for (; *name != '\0'; ++name) {
      h = (h << 4) + static_cast<unsigned char>(*name);
      h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff;
    }
    return h;
  }
  void* Address(uint32_t i) const { return reinterpret_cast<void*>(base_ + symbols_[i].st_value); }
  bool IsDefault(uint32_t i) const {
    return versions_ == nullptr || (versions_[i] & kHiddenVersion) == 0;
  }
  bool Defines(uint32_t i, const char* name) const {
    const ElfW(Sym)& s = symbols_[i];
    return s.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s.st_info) == STT_FUNC &&
           Same(strings_ + s.st_name, name);
  }

  uint64_t base_;
  const ElfW(Dyn) * dynamic_;
  const uint32_t* hash_ = nullptr;
  const uint32_t* old_hash_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint16_t* versions_ = nullptr;
};

const link_map* OwnLibrary() {
  Dl_info info;
  void* map = nullptr;
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

// In load order from `library` on, which is the order of the global scope where programs start.
// Libraries that a program starts with are never unloaded, so no lock is needed as far as libc.
void* FindFrom(const link_map* library, const char* name, bool only_libc) {
  for (; library != nullptr; library = library->l_next) {
    if (only_libc && !IsLibc(*library)) continue;
    void* function = DynamicSymbols(library->l_addr, library->l_ld).Find(name);
    if (function != nullptr && !InOwnImage(function)) return function;
  }
  return nullptr;
}

void* FindInLibc(const char* name) {
  const link_map* library = OwnLibrary();
  while (library != nullptr && library->l_prev != nullptr) library = library->l_prev;
  return FindFrom(library, name, true);
}

int DefinesElsewhere(dl_phdr_info* library, size_t, void* name) {
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + header.p_vaddr);
    void* function =
        DynamicSymbols(library->dlpi_addr, dynamic).Find(static_cast<const char*>(name));
    if (function != nullptr && !InOwnImage(function)) return 1;
  }
  return 0;
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

// Remembers what `find` found.
template <typename Find>
void* Once(std::atomic<void*>* place, Find find) {
  void* function = place->load(std::memory_order_acquire);
  if (function == nullptr) {
    function = find();
    place->store(function, std::memory_order_release);
  }
  return function;
}

constinit std::atomic<void*> libc_dlsym{nullptr}, libc_dlvsym{nullptr}, libc_dlclose{nullptr},
    next_dlsym{nullptr}, next_dlvsym{nullptr}, next_dlclose{nullptr};

}  // namespace

// Kept out of line: the caller that the real function sees is this one.
__attribute__((noinline)) void* LibcDlsym(void* handle, const char* name) {
  void* real = Once(&libc_dlsym, [] { return FindInLibc("dlsym"); });
  return real == nullptr ? nullptr : reinterpret_cast<decltype(&::dlsym)>(real)(handle, name);
}

__attribute__((noinline)) void* LibcDlvsym(void* handle, const char* name, const char* version) {
  void* real = Once(&libc_dlvsym, [] { return FindInLibc("dlvsym"); });
  return real == nullptr ? nullptr
                         : reinterpret_cast<decltype(&::dlvsym)>(real)(handle, name, version);
}

void LibcDlclose(void* handle) {
  void* real = Once(&libc_dlclose, [] { return FindInLibc("dlclose"); });
  if (real != nullptr) reinterpret_cast<decltype(&::dlclose)>(real)(handle);
}

void* NextLoaderFunction(const char* name) {
  const auto find = [name] {
    const link_map* own = OwnLibrary();
    void* next = own == nullptr ? nullptr : FindFrom(own->l_next, name, false);
    return next != nullptr ? next : FindInLibc(name);
  };
  return Once(Same(name, "dlsym")    ? &next_dlsym
              : Same(name, "dlvsym") ? &next_dlvsym
                                     : &next_dlclose,
              find);
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

bool AnybodyIsLinkedTo(const char* library) {
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
