// preload/loader/dynamic_symbols.h
//
// DynamicSymbols: the dynamic symbols of one library, as the loader has mapped and relocated them:
// the symbols that it defines and those that it imports, each with its version.
//
// Reads the library's own tables and calls no function, so that it works when the loader must not
// be called: on behalf of the loader's own functions (preload/loader/loader.cc) and inside
// dl_iterate_phdr.
//
// Thread safety: an object belongs to its thread. The library must stay mapped during its lifetime.

#ifndef GMT_PRELOAD_LOADER_DYNAMIC_SYMBOLS_H_
#define GMT_PRELOAD_LOADER_DYNAMIC_SYMBOLS_H_

#include <elf.h>
#include <link.h>
#include <stdint.h>

namespace gmt::preload {

// Replaces strcmp: sanitizers intercept libc's string functions and look up the real ones through
// our dlsym while they start, when calling theirs would crash.
inline bool Same(const char* a, const char* b) {
  for (; *a == *b; ++a, ++b) {
    if (*a == '\0') return true;
  }
  return false;
}

// The hash function of the GNU hash table.
inline uint32_t GnuHash(const char* name) {
  uint32_t h = 5381;
  for (; *name != '\0'; ++name) h = h * 33 + static_cast<unsigned char>(*name);
  return h;
}

class DynamicSymbols {
 public:
  DynamicSymbols(uint64_t base, const ElfW(Dyn) * dynamic);

  // Returns the function of that name in that version, or in the default version if `version` is
  // nullptr. In a library without versions, any function of that name matches. Returns nullptr if
  // the library defines none.
  void* Find(const char* name, const char* version = nullptr) const;

  // Returns whether the library may define a function of that hash; false is certain. REQUIRES:
  // has_hash().
  bool MayDefine(uint32_t gnu_hash) const;
  bool has_hash() const { return hash_ != nullptr; }

  // Returns whether it is linked with the library of that SONAME.
  bool Needs(const char* library) const;

  // Properties of an entry of its symbol table. REQUIRES: has_symbols(); i is an index that a
  // relocation names.
  bool has_symbols() const { return symbols_ != nullptr && strings_ != nullptr; }
  const char* Name(uint32_t i) const { return strings_ + symbols_[i].st_name; }
  bool IsDefined(uint32_t i) const { return symbols_[i].st_shndx != SHN_UNDEF; }
  // The version under which it is imported or defined; nullptr: none.
  const char* Version(uint32_t i) const;

 private:
  template <typename Matches>
  void* FindByGnuHash(const char* name, Matches matches) const;
  template <typename Matches>
  void* FindByOldHash(const char* name, Matches matches) const;
  template <typename Matches>
  void* Find(const char* name, Matches matches) const;

  void* Address(uint32_t i) const { return reinterpret_cast<void*>(base_ + symbols_[i].st_value); }
  bool IsDefault(uint32_t i) const;
  bool Defines(uint32_t i, const char* name) const;
  const char* NeededVersion(uint16_t number) const;
  const char* DefinedVersion(uint16_t number) const;

  uint64_t base_;
  const ElfW(Dyn) * dynamic_;
  const uint32_t* hash_ = nullptr;
  const uint32_t* old_hash_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint16_t* versions_ = nullptr;
  const ElfW(Verneed) * needed_versions_ = nullptr;
  const ElfW(Verdef) * defined_versions_ = nullptr;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_DYNAMIC_SYMBOLS_H_
