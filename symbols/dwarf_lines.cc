#include "symbols/dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace gmt::symbols {
namespace {

// Estimated size of lines and abbreviations of a unit; libdw does not report it.
constexpr uint64_t kBytesOfUnit = 256 * 1024;
constexpr int kMaxScopes = 256;  // no compiler nests deeper; more means damage

struct Scopes {
  Dwarf_Die* dies = nullptr;
  int count = 0;
  ~Scopes() { free(dies); }
};

struct UnitRange {
  uint64_t start = 0, end = 0;
  Dwarf_Off unit = 0;
};

bool IsFunction(Dwarf_Die* die) {
  const int tag = dwarf_tag(die);
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

std::string FunctionName(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (unsigned code : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    if (dwarf_attr_integrate(die, code, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute)) return name;
  }
  return "";
}

// File names in DWARF are relative to the compiler's working directory.
std::string AbsoluteFile(Dwarf_Die* unit, const char* file) {
  if (file == nullptr) return "";
  if (file[0] == '/') return file;
  Dwarf_Attribute attribute;
  const char* directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  return directory == nullptr ? file : std::string(directory) + "/" + file;
}

void SetLine(Dwarf_Die* unit, uint64_t address, DwarfFrame& frame) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) return;
  dwarf_lineno(line, &frame.line);
  frame.file = AbsoluteFile(unit, dwarf_linesrc(line, nullptr, nullptr));
}

// Sets the location at which the inlined function `die` was called.
void SetCallSite(Dwarf_Die* unit, Dwarf_Die* die, DwarfFrame& caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value) == 0) {
    caller.line = static_cast<int>(std::min<Dwarf_Word>(value, INT32_MAX));
  }
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count) {
    caller.file = AbsoluteFile(unit, dwarf_filesrc(files, value, nullptr, nullptr));
  }
}

class LibdwLines : public DwarfLines {
 public:
  explicit LibdwLines(Dwarf* dwarf) : dwarf_(dwarf) {}
  ~LibdwLines() override { dwarf_end(dwarf_); }

  std::vector<DwarfFrame> Find(uint64_t address) override {
    Dwarf_Die unit;
    if (!FindUnit(address, &unit)) return {};
    read_units_.insert(dwarf_dieoffset(&unit));
    std::vector<DwarfFrame> frames(1);
    SetLine(&unit, address, frames[0]);

    // getscopes follows an inlined function to its definition; its parents in the tree are the
    // callers.
    Scopes lexical, physical;
    lexical.count = dwarf_getscopes(&unit, address, &lexical.dies);
    if (lexical.count > 0) {
      physical.count = dwarf_getscopes_die(&lexical.dies[0], &physical.dies);
    }
    const int depth = std::min(physical.count, kMaxScopes);
    for (int i = 0; i < depth; ++i) {
      Dwarf_Die* die = &physical.dies[i];
      if (!IsFunction(die)) continue;
      frames.back().function = FunctionName(die);
      if (dwarf_tag(die) != DW_TAG_inlined_subroutine) return frames;
      frames.emplace_back();
      SetCallSite(&unit, die, frames.back());
    }
    return Usable(std::move(frames));
  }

  uint64_t bytes() const override {
    const uint64_t ranges = units_ ? units_->capacity() * sizeof(UnitRange) : 0;
    return ranges + read_units_.size() * kBytesOfUnit;
  }

 private:
  // If a chain did not reach the enclosing function, its last frame has no name.
  static std::vector<DwarfFrame> Usable(std::vector<DwarfFrame> frames) {
    if (frames.back().function.empty() && frames.back().line == 0) frames.pop_back();
    return frames;
  }

  bool FindUnit(uint64_t address, Dwarf_Die* unit) {
    if (dwarf_addrdie(dwarf_, address, unit) != nullptr) return true;
    // clang writes no .debug_aranges: read the ranges of the units once.
    if (!units_) ReadUnits();
    auto after = std::upper_bound(units_->begin(), units_->end(), address,
                                  [](uint64_t a, const UnitRange& r) { return a < r.start; });
    if (after == units_->begin() || std::prev(after)->end <= address) return false;
    return dwarf_offdie(dwarf_, std::prev(after)->unit, unit) != nullptr;
  }

  void ReadUnits() {
    units_.emplace();
    Dwarf_Off offset = 0, next = 0;
    size_t header = 0;
    while (dwarf_nextcu(dwarf_, offset, &next, &header, nullptr, nullptr, nullptr) == 0) {
      Dwarf_Die unit;
      if (dwarf_offdie(dwarf_, offset + header, &unit) != nullptr) AddRanges(&unit);
      if (next <= offset) break;
      offset = next;
    }
    std::sort(units_->begin(), units_->end(),
              [](const UnitRange& a, const UnitRange& b) { return a.start < b.start; });
  }

  void AddRanges(Dwarf_Die* unit) {
    Dwarf_Addr base = 0, start = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
      if (start < end) units_->push_back({start, end, dwarf_dieoffset(unit)});
    }
  }

  Dwarf* dwarf_;
  absl::flat_hash_set<Dwarf_Off> read_units_;
  std::optional<std::vector<UnitRange>> units_;
};

}  // namespace

std::unique_ptr<DwarfLines> DwarfLines::Open(const ElfFile& file) {
  if (!file.HasSection(".debug_info") && !file.HasSection(".zdebug_info")) return nullptr;
  Dwarf* dwarf = dwarf_begin_elf(file.handle(), DWARF_C_READ, nullptr);
  return dwarf == nullptr ? nullptr : std::make_unique<LibdwLines>(dwarf);
}

}  // namespace gmt::symbols
