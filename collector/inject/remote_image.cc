#include "collector/inject/remote_image.h"

#include <algorithm>
#include <cstring>

namespace gmt::inject {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kMaxSymbols = 1 << 20;  // more indicates damage
constexpr uint64_t kMaxNames = 64 << 20;
constexpr uint32_t kMaxChain = 4096;  // linkers make chains of a few symbols

bool IsOurs(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kThisMachine &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= 128;
}

// Returns the number of symbols, which only the hash tables reveal: the last symbol of the last
// chain.
uint32_t CountByGnuHash(const RemoteMemory& memory, uint64_t table) {
  struct {
    uint32_t buckets, first, bloom, shift;
  } header;
  if (!memory.Read(table, &header) || header.buckets > kMaxSymbols || header.bloom > kMaxSymbols ||
      header.first > kMaxSymbols) {
    return 0;
  }
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

// The load bias and the segments of an image.
struct Layout {
  uint64_t bias = 0;
  std::vector<Elf64_Phdr> segments;

  static std::optional<Layout> At(const RemoteMemory& memory, uint64_t base) {
    Elf64_Ehdr header;
    if (!memory.Read(base, &header) || !IsOurs(header)) return std::nullopt;
    Layout layout;
    layout.segments.resize(header.e_phnum);
    if (!memory.Read(base + header.e_phoff, layout.segments.data(),
                     layout.segments.size() * sizeof(Elf64_Phdr))) {
      return std::nullopt;
    }
    const auto first = std::find_if(layout.segments.begin(), layout.segments.end(),
                                    [](const Elf64_Phdr& p) { return p.p_type == PT_LOAD; });
    if (first == layout.segments.end()) return std::nullopt;
    layout.bias = base - (first->p_vaddr - first->p_offset);
    return layout;
  }
};

// Tables named in the dynamic section; 0: not named.
struct Tables {
  uint64_t symbols = 0, names = 0, names_size = 0, gnu_hash = 0, hash = 0;

  static Tables Read(const RemoteMemory& memory, uint64_t bias, uint64_t dynamic, uint64_t size) {
    std::vector<Elf64_Dyn> entries(std::min<uint64_t>(size / sizeof(Elf64_Dyn), 4096));
    Tables tables;
    if (!memory.Read(dynamic, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return tables;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      // glibc's loader has relocated these values, except in the vdso and in itself.
      const uint64_t address = entry.d_un.d_ptr < bias ? entry.d_un.d_ptr + bias : entry.d_un.d_ptr;
      if (entry.d_tag == DT_SYMTAB) tables.symbols = address;
      if (entry.d_tag == DT_STRTAB) tables.names = address;
      if (entry.d_tag == DT_GNU_HASH) tables.gnu_hash = address;
      if (entry.d_tag == DT_HASH) tables.hash = address;
      if (entry.d_tag == DT_STRSZ) tables.names_size = entry.d_un.d_val;
    }
    return tables;
  }
};

uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

bool IsInGnuHash(const RemoteMemory& memory, const Tables& tables, std::string_view name) {
  struct {
    uint32_t buckets, first, bloom, shift;
  } header;
  if (!memory.Read(tables.gnu_hash, &header) || header.buckets == 0 ||
      header.buckets > kMaxSymbols || header.bloom > kMaxSymbols || header.first > kMaxSymbols) {
    return false;
  }
  const uint32_t hash = GnuHash(name);
  const uint64_t buckets_at = tables.gnu_hash + sizeof(header) + header.bloom * 8ull;
  const uint64_t chains_at = buckets_at + header.buckets * 4ull;
  uint32_t at;
  if (!memory.Read(buckets_at + hash % header.buckets * 4ull, &at) || at < header.first)
    return false;
  const uint32_t end = at + kMaxChain;
  for (uint32_t word = 0; (word & 1) == 0 && at < end && at < kMaxSymbols; ++at) {
    if (!memory.Read(chains_at + (at - header.first) * 4ull, &word)) return false;
    if ((word | 1) != (hash | 1)) continue;
    Elf64_Sym symbol;
    std::string text(name.size() + 1, '?');
    if (memory.Read(tables.symbols + at * sizeof(symbol), &symbol) && IsFunction(symbol) &&
        memory.Read(tables.names + symbol.st_name, text.data(), text.size()) &&
        text.back() == '\0' && text.compare(0, name.size(), name) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<RemoteImage> RemoteImage::At(const RemoteMemory& memory, uint64_t base) {
  const std::optional<Layout> layout = Layout::At(memory, base);
  if (!layout.has_value()) return std::nullopt;
  RemoteImage image;
  image.bias_ = layout->bias;
  for (const Elf64_Phdr& p : layout->segments) {
    const uint64_t end = image.bias_ + p.p_vaddr + p.p_memsz;
    if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0 && end % kPage != 0)
      image.code_tails_.push_back({end, kPage - end % kPage});
    if (p.p_type == PT_DYNAMIC) image.ReadSymbols(memory, image.bias_ + p.p_vaddr, p.p_memsz);
  }
  return image;
}

bool RemoteImage::Exports(const RemoteMemory& memory, uint64_t base, std::string_view function) {
  const std::optional<Layout> layout = Layout::At(memory, base);
  if (!layout.has_value()) return false;
  for (const Elf64_Phdr& p : layout->segments) {
    if (p.p_type != PT_DYNAMIC) continue;
    const Tables tables = Tables::Read(memory, layout->bias, layout->bias + p.p_vaddr, p.p_memsz);
    if (tables.gnu_hash != 0) return IsInGnuHash(memory, tables, function);
    const std::optional<RemoteImage> image = At(memory, base);
    return image.has_value() && image->FindFunction(function) != 0;
  }
  return false;
}

void RemoteImage::ReadSymbols(const RemoteMemory& memory, uint64_t dynamic, uint64_t size) {
  const Tables tables = Tables::Read(memory, bias_, dynamic, size);
  const uint32_t count = tables.gnu_hash != 0 ? CountByGnuHash(memory, tables.gnu_hash)
                         : tables.hash != 0   ? CountByHash(memory, tables.hash)
                                              : 0;
  if (tables.symbols == 0 || tables.names == 0 || tables.names_size > kMaxNames) return;
  symbols_.resize(count);
  names_.resize(tables.names_size);
  if (!memory.Read(tables.symbols, symbols_.data(), count * sizeof(Elf64_Sym)) ||
      !memory.Read(tables.names, names_.data(), names_.size())) {
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
    // An STT_GNU_IFUNC symbol is a resolver that selects the function, not the function itself.
    if (IsFunction(symbol) && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && NameOf(symbol) == name)
      return bias_ + symbol.st_value;
  }
  return 0;
}

std::vector<std::string_view> RemoteImage::FunctionsAt(uint64_t address) const {
  std::vector<std::string_view> functions;
  for (const Elf64_Sym& symbol : symbols_) {
    const uint64_t start = bias_ + symbol.st_value;
    if (IsFunction(symbol) && address >= start &&
        address < start + std::max<uint64_t>(symbol.st_size, 1)) {
      functions.push_back(NameOf(symbol));
    }
  }
  return functions;
}

}  // namespace gmt::inject
