#include "symbols/symbol_table.h"

#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <tuple>

namespace gmt::symbols {
namespace {

struct CodeSection {
  uint64_t start = 0, end = 0;
};

// Returns code sections by section index, with empty ranges for sections without code.
std::vector<CodeSection> CodeSections(Elf* elf) {
  std::vector<CodeSection> sections;
  size_t count = 0;
  if (elf_getshdrnum(elf, &count) != 0) return sections;
  for (size_t index = 0; index < count; ++index) {
    GElf_Shdr header;
    Elf_Scn* section = elf_getscn(elf, index);
    if (section == nullptr || gelf_getshdr(section, &header) == nullptr) break;
    CodeSection code;
    if ((header.sh_flags & SHF_EXECINSTR) != 0) {
      code = {header.sh_addr, header.sh_addr + header.sh_size};
      if (code.end < code.start) code = {};
    }
    sections.push_back(code);
  }
  return sections;
}

bool NamesCode(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol.st_size == 0);
}

// Order of several names for one address: the exported name is the best known; a weak alias and
// then a local name are next best.
uint32_t NameOrder(const GElf_Sym& symbol) {
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      return 0;
    case STB_WEAK:
      return 1;
    default:
      return 2;
  }
}

// The longer one of two ranges with the same start comes first, and so does the worse one of two
// names for the same range: later ranges cover earlier ones.
bool Before(const SymbolRange& a, const SymbolRange& b) {
  return std::tie(a.start, b.end, b.order, b.name) < std::tie(b.start, a.end, a.order, a.name);
}

bool StartsBelow(const SymbolRange& a, const SymbolRange& b) { return a.start < b.start; }

// Adds symbols without a size in the gaps between sized ones. A label inside a function belongs to
// that function.
void AddUnsized(std::vector<SymbolRange> unsized, std::vector<SymbolRange>& ranges) {
  std::sort(unsized.begin(), unsized.end(), Before);
  const size_t sized = ranges.size();
  for (size_t i = 0; i < unsized.size(); ++i) {
    SymbolRange range = unsized[i];
    if (i > 0 && unsized[i - 1].start == range.start) continue;
    const auto sized_end = ranges.begin() + static_cast<ptrdiff_t>(sized);
    const auto after = std::upper_bound(ranges.begin(), sized_end, range, StartsBelow);
    if (after != ranges.begin() && std::prev(after)->end > range.start) continue;
    if (after != sized_end) range.end = std::min(range.end, after->start);
    const auto next = std::upper_bound(unsized.begin(), unsized.end(), range, StartsBelow);
    if (next != unsized.end()) range.end = std::min(range.end, next->start);
    if (range.start < range.end) ranges.push_back(range);
  }
  std::inplace_merge(ranges.begin(), ranges.begin() + static_cast<ptrdiff_t>(sized), ranges.end(),
                     StartsBelow);
}

}  // namespace

std::vector<SymbolRange> MakeDisjoint(std::vector<SymbolRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), Before);
  std::vector<SymbolRange> out;
  std::vector<SymbolRange> open;  // enclosing ranges, innermost last
  uint64_t reached = 0;           // everything below is done
  const auto emit = [&](const SymbolRange& range, uint64_t end) {
    const uint64_t start = std::max(range.start, reached);
    if (start >= end) return;
    out.push_back({start, end, range.name, range.order});
    reached = end;
  };
  const auto close_until = [&](uint64_t address) {
    while (!open.empty() && open.back().end <= address) {
      emit(open.back(), open.back().end);
      open.pop_back();
    }
  };
  for (const SymbolRange& range : ranges) {
    if (range.start >= range.end) continue;
    close_until(range.start);
    if (!open.empty()) emit(open.back(), range.start);
    reached = std::max(reached, range.start);
    open.push_back(range);
  }
  close_until(UINT64_MAX);
  return out;
}

SymbolTable::SymbolTable(const ElfFile& file) : file_(file) {
  Load(SHT_SYMTAB);
  from_symtab_ = !ranges_.empty();
  if (ranges_.empty()) Load(SHT_DYNSYM);
}

void SymbolTable::Load(uint32_t section_type) {
  Elf* const elf = file_.handle();
  const std::vector<CodeSection> code = CodeSections(elf);
  std::vector<SymbolRange> sized, unsized;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != section_type) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) continue;
    string_section_ = header.sh_link;
    const size_t count = std::min<uint64_t>(data->d_size / header.sh_entsize, INT32_MAX);
    for (size_t i = 1; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (!NamesCode(symbol) || symbol.st_shndx >= code.size()) continue;
      const CodeSection& home = code[symbol.st_shndx];
      if (symbol.st_value < home.start || symbol.st_value >= home.end) continue;
      const uint64_t room = home.end - symbol.st_value;
      const bool has_size = symbol.st_size != 0;
      const uint64_t size = std::min(room, has_size ? symbol.st_size : kMaxUnsizedBytes);
      (has_size ? sized : unsized)
          .push_back({symbol.st_value, symbol.st_value + size, symbol.st_name, NameOrder(symbol)});
    }
    break;
  }
  ranges_ = MakeDisjoint(std::move(sized));
  AddUnsized(std::move(unsized), ranges_);
  ranges_.shrink_to_fit();
}

std::string_view SymbolTable::Find(uint64_t address) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t a, const SymbolRange& r) { return a < r.start; });
  if (after == ranges_.begin()) return {};
  const SymbolRange& range = *std::prev(after);
  if (address >= range.end) return {};
  const char* name = elf_strptr(file_.handle(), string_section_, range.name);
  return name == nullptr ? std::string_view() : std::string_view(name);
}

}  // namespace gmt::symbols
