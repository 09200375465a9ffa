// Finds functions of a loaded library in its symbol table. Calls through them bypass every
// interposed library and every hook of dlsym.
#ifndef TESTS_PROGRAMS_CUPTI_UNHOOKED_H_
#define TESTS_PROGRAMS_CUPTI_UNHOOKED_H_

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Exits the program if the library has no such function. Assumes that the symbol table ends where
// the string table begins, as linkers lay them out.
template <typename Function>
Function Unhooked(const char* library, const char* name) {
  auto* map = static_cast<const link_map*>(dlopen(library, RTLD_LAZY));
  if (map == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
  }
  for (const ElfW(Sym)* s = symbols; reinterpret_cast<const char*>(s + 1) <= strings; ++s) {
    if (s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
        std::strcmp(strings + s->st_name, name) == 0) {
      return reinterpret_cast<Function>(map->l_addr + s->st_value);
    }
  }
  std::fprintf(stderr, "%s has no %s\n", library, name);
  std::exit(2);
}

#endif  // TESTS_PROGRAMS_CUPTI_UNHOOKED_H_
