// collector/inject/testing/made_image.h
//
// MadeImage: a library in memory that exports one function, with no more than a reader of images looks
// at. Its parts may be changed, to what no linker makes.
//
// Thread safety: none.

#ifndef GMT_COLLECTOR_INJECT_TESTING_MADE_IMAGE_H_
#define GMT_COLLECTOR_INJECT_TESTING_MADE_IMAGE_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gmt::inject {

struct MadeImage {
  static constexpr size_t kChain = 16384;  // room for one that has no end
  static constexpr uint64_t kFunction = 0x1000;

  explicit MadeImage(std::string_view exported) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#else
    header.e_machine = EM_X86_64;
#endif
    header.e_phoff = offsetof(MadeImage, segments);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    segments[0].p_type = PT_LOAD;
    segments[1].p_type = PT_DYNAMIC;
    segments[1].p_vaddr = offsetof(MadeImage, dynamic);
    segments[1].p_memsz = sizeof(dynamic);
    dynamic[0] = Entry(DT_SYMTAB, offsetof(MadeImage, symbols));
    dynamic[1] = Entry(DT_STRTAB, offsetof(MadeImage, names));
    dynamic[2] = Entry(DT_STRSZ, sizeof(names));
    dynamic[3] = Entry(DT_GNU_HASH, offsetof(MadeImage, buckets));
    std::memcpy(names + 1, exported.data(), exported.size());
    symbols[1].st_name = 1;
    symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols[1].st_shndx = 1;
    symbols[1].st_value = kFunction;
    symbols[1].st_size = 16;
    uint32_t hash = 5381;
    for (const char c : exported) hash = hash * 33 + static_cast<unsigned char>(c);
    chain[0] = hash | 1;
  }

  uint64_t base() const { return reinterpret_cast<uint64_t>(this); }
  uint64_t function() const { return base() + kFunction; }

  Elf64_Ehdr header = {};
  Elf64_Phdr segments[2] = {};
  Elf64_Dyn dynamic[5] = {};
  Elf64_Sym symbols[2] = {};
  char names[64] = {};
  // The hash table: one bucket, no filter.
  uint32_t buckets = 1, first = 1, bloom = 0, shift = 0, bucket = 1;
  uint32_t chain[kChain] = {};

 private:
  static Elf64_Dyn Entry(Elf64_Sxword tag, uint64_t value) {
    Elf64_Dyn entry;
    entry.d_tag = tag;
    entry.d_un.d_ptr = value;
    return entry;
  }
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TESTING_MADE_IMAGE_H_
