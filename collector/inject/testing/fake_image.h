// collector/inject/testing/fake_image.h
//
// FakeImage: a library in memory that exports a few functions and has only what a reader of images
// needs. Tests may change its parts to values that no linker produces.
//
// Thread safety: none.

#ifndef GMT_COLLECTOR_INJECT_TESTING_FAKE_IMAGE_H_
#define GMT_COLLECTOR_INJECT_TESTING_FAKE_IMAGE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "collector/inject/memory_map.h"

namespace gmt::inject {

struct FakeImage {
  static constexpr size_t kChain = 16384;  // room for a chain without end
  static constexpr uint64_t kFunction = 0x1000;

  static constexpr size_t kMaxFunctions = 6;
  static constexpr uint64_t kFunctionDistance = 0x100;  // distance between functions in bytes

  explicit FakeImage(std::string_view exported)
      : FakeImage(std::initializer_list<std::string_view>{exported}) {}
  // At most kMaxFunctions names, which must fit into `names`.
  explicit FakeImage(std::initializer_list<std::string_view> exported) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#else
    header.e_machine = EM_X86_64;
#endif
    header.e_phoff = offsetof(FakeImage, segments);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    segments[0].p_type = PT_LOAD;
    segments[1].p_type = PT_DYNAMIC;
    segments[1].p_vaddr = offsetof(FakeImage, dynamic);
    segments[1].p_memsz = sizeof(dynamic);
    dynamic[0] = Entry(DT_SYMTAB, offsetof(FakeImage, symbols));
    dynamic[1] = Entry(DT_STRTAB, offsetof(FakeImage, names));
    dynamic[2] = Entry(DT_STRSZ, sizeof(names));
    dynamic[3] = Entry(DT_GNU_HASH, offsetof(FakeImage, buckets));
    Elf64_Word name_at = 1;
    size_t n = 0;
    for (const std::string_view name : exported) {
      Elf64_Sym& symbol = symbols[1 + n];
      symbol.st_name = name_at;
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_shndx = 1;
      symbol.st_value = kFunction + n * kFunctionDistance;
      symbol.st_size = 16;
      name.copy(names + name_at, name.size());
      name_at += static_cast<Elf64_Word>(name.size()) + 1;
      const bool last = ++n == exported.size();
      chain[n - 1] = (Hash(name) & ~1u) | (last ? 1 : 0);
    }
  }

  uint64_t base() const { return reinterpret_cast<uint64_t>(this); }
  // The address of the n-th function.
  uint64_t function(size_t n = 0) const { return base() + kFunction + n * kFunctionDistance; }

  // The image's entry in a process's map if it were loaded from that file.
  Mapping MappedFrom(const std::string& path) const {
    Mapping mapping;
    mapping.start = base();
    mapping.end = base() + sizeof(FakeImage);
    mapping.readable = true;
    mapping.path = path;
    return mapping;
  }

  Elf64_Ehdr header = {};
  Elf64_Phdr segments[2] = {};
  Elf64_Dyn dynamic[5] = {};
  Elf64_Sym symbols[1 + kMaxFunctions] = {};
  char names[128] = {};
  // The hash table: one bucket, no filter.
  uint32_t buckets = 1, first = 1, bloom = 0, shift = 0, bucket = 1;
  uint32_t chain[kChain] = {};

 private:
  static uint32_t Hash(std::string_view name) {
    uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
    return hash;
  }
  static Elf64_Dyn Entry(Elf64_Sxword tag, uint64_t value) {
    Elf64_Dyn entry;
    entry.d_tag = tag;
    entry.d_un.d_ptr = value;
    return entry;
  }
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TESTING_FAKE_IMAGE_H_
