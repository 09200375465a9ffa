#include "collector/inject/remote_image.h"

#include <algorithm>
#include <cstring>

namespace gmt::inject {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kMaxSymbols = 1 << 20;  // what is more is damage
constexpr uint64_t kMaxNames = 64 << 20;
#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

bool IsOurs(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= 128;
}

// How many symbols there are, which only the hash tables tell: the last one of the longest chain.
uint32_t CountByGnuHash(const RemoteMemory& memory, uint64_t table) {
  struct {
    uint32_t buckets, first, bloom, shift;
  } header;
  if (!memory.Read(table, &header) || header.buckets > kMaxSymbols || header.bloom > kMaxSymbols)
    return 0;
  const uint64_t buckets_at = table + sizeof(header) + header.bloom * 8;
  std::vector<uint32_t> buckets(header.buckets);
  if (!memory.Read(buckets_at, buckets.data(), buckets.size() * 4)) return 0;
  uint32_t last = 0;
  for (const uint32_t bucket : buckets) last = std::max(last, bucket);
  if (last < header.first) return header.first;
  const uint64_t chains_at = buckets_at + header.buckets * 4;
  uint32_t word = 0;
  while (last < kMaxSymbols && memory.Read(chains_at + (last - header.first) * 4ull, &word)) {
    ++last;
    if ((word & 1) != 0) return last;  // the chain's end
  }
  return 0;
}

uint32_t CountByHash(const RemoteMemory& memory, uint64_t table) {
  uint32_t words[2];
  return memory.Read(table, &words) && words[1] <= kMaxSymbols ? words[1] : 0;
}

bool IsFunction(const Elf64_Sym& symbol) {
  const int type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF;
}

}  // namespace

std::optional<RemoteImage> RemoteImage::At(const RemoteMemory& memory, uint64_t base) {
  Elf64_Ehdr header;
  if (!memory.Read(base, &header) || !IsOurs(header)) return std::nullopt;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!memory.Read(base + header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return std::nullopt;
  RemoteImage image;
  const auto first = std::find_if(segments.begin(), segments.end(),
                                  [](const Elf64_Phdr& p) { return p.p_type == PT_LOAD; });
  if (first == segments.end()) return std::nullopt;
  image.bias_ = base - (first->p_vaddr - first->p_offset);
  for (const Elf64_Phdr& p : segments) {
    const uint64_t end = image.bias_ + p.p_vaddr + p.p_memsz;
    if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0 && end % kPage != 0)
      image.code_tails_.push_back({end, kPage - end % kPage});
    if (p.p_type == PT_DYNAMIC) image.ReadSymbols(memory, image.bias_ + p.p_vaddr, p.p_memsz);
  }
  return image;
}

void RemoteImage::ReadSymbols(const RemoteMemory& memory, uint64_t dynamic, uint64_t size) {
  std::vector<Elf64_Dyn> entries(std::min<uint64_t>(size / sizeof(Elf64_Dyn), 4096));
  if (!memory.Read(dynamic, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return;
  uint64_t symbols = 0, names = 0, names_size = 0, gnu_hash = 0, hash = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    // The loader of glibc has made addresses of them, but in the vdso and in itself.
    const uint64_t address = entry.d_un.d_ptr < bias_ ? entry.d_un.d_ptr + bias_ : entry.d_un.d_ptr;
    if (entry.d_tag == DT_SYMTAB) symbols = address;
    if (entry.d_tag == DT_STRTAB) names = address;
    if (entry.d_tag == DT_GNU_HASH) gnu_hash = address;
    if (entry.d_tag == DT_HASH) hash = address;
    if (entry.d_tag == DT_STRSZ) names_size = entry.d_un.d_val;
  }
  const uint32_t count = gnu_hash != 0 ? CountByGnuHash(memory, gnu_hash)
                         : hash != 0   ? CountByHash(memory, hash)
                                       : 0;
  if (symbols == 0 || names == 0 || names_size > kMaxNames) return;
  symbols_.resize(count);
  names_.resize(names_size);
  if (!memory.Read(symbols, symbols_.data(), count * sizeof(Elf64_Sym)) ||
      !memory.Read(names, names_.data(), names_.size())) {
    symbols_.clear();
  }
}

std::string_view RemoteImage::NameOf(const Elf64_Sym& symbol) const {
  if (symbol.st_name >= names_.size()) return {};
  const char* name = names_.data() + symbol.st_name;
  return {name, strnlen(name, names_.size() - symbol.st_name)};
}

uint64_t RemoteImage::FindFunction(std::string_view name) const {
  for (const Elf64_Sym& symbol : symbols_) {
    // What STT_GNU_IFUNC names chooses the function, and is none itself.
    if (IsFunction(symbol) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && NameOf(symbol) == name)
      return bias_ + symbol.st_value;
  }
  return 0;
}

std::string RemoteImage::FunctionAt(uint64_t address) const {
  for (const Elf64_Sym& symbol : symbols_) {
    const uint64_t start = bias_ + symbol.st_value;
    if (IsFunction(symbol) && address >= start &&
        address < start + std::max<uint64_t>(symbol.st_size, 1))
      return std::string(NameOf(symbol));
  }
  return {};
}

}  // namespace gmt::inject
