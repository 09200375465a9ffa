// preload/routes/got_slots.h
//
// MappedModule: one loaded module, with what it takes to redirect its calls of other libraries: its
// address range, its symbols, its slots (words that the loader fills in with a function's address),
// and a way to store into them.
//
//   slot      relocation     location
//   call      JUMP_SLOT      .got.plt; or .got, protected by RELRO, if everything is bound at once
//   address   GLOB_DAT       .got; RELRO
//   data      64 bits, abs.  tables of functions in .data or .data.rel.ro
//
// A store writes one aligned 8-byte word, so a thread that calls through the slot at the same time
// reaches either the old function or the new one. Pages that the loader has write-protected
// (PT_GNU_RELRO) are made writable for the store and are then write-protected again.
//
// Thread safety: REQUIRES that the module is not unloaded meanwhile and that only one thread
// stores. Inside dl_iterate_phdr, whose lock ensures both, these hold.

#ifndef GMT_PRELOAD_ROUTES_GOT_SLOTS_H_
#define GMT_PRELOAD_ROUTES_GOT_SLOTS_H_

#include <link.h>
#include <stdint.h>

#include "preload/loader/dynamic_symbols.h"

namespace gmt::preload {

class MappedModule {
 public:
  explicit MappedModule(const dl_phdr_info& info);

  bool has_symbols() const { return dynamic_ != nullptr && symbols_.has_symbols(); }
  const DynamicSymbols& symbols() const { return symbols_; }
  uint64_t base() const { return base_; }
  uint64_t dynamic() const { return reinterpret_cast<uint64_t>(dynamic_); }
  // The file's name without its directory; "" for the program itself.
  const char* name() const { return name_; }
  bool Contains(uint64_t address) const { return address >= start_ && address < end_; }

  // Whether it has DT_RPATH. Symbols of libraries that it loads are then searched along its path
  // too.
  bool has_rpath() const { return has_rpath_; }
  // Distinguishes this file from another one that may be loaded at the same address later.
  uint64_t Fingerprint() const;

  enum class SlotKind { kCall, kAddress, kData };
  struct Slot {
    uint64_t* place;
    uint32_t symbol;  // its index
    SlotKind kind;
  };
  // Calls visit(const Slot&) for each slot of a symbol.
  template <typename Visit>
  void ForEachSlot(Visit visit) const {
    ForEachIn(calls_, calls_bytes_, visit);
    ForEachIn(others_, others_bytes_, visit);
  }

  // Returns where, between `begin` and `end` of its writable memory, the part begins that is
  // neither write-protected nor the table of calls.
  uint64_t EndOfSlots(uint64_t begin, uint64_t end) const;

  // Returns whether the loader has write-protected the slot, so that its contents are as the loader
  // left them.
  bool IsProtected(const uint64_t* slot) const;

  // Returns false if the slot is part of code that is relocated in place, or if the kernel refuses.
  bool Store(uint64_t* slot, uint64_t value) const;

 private:
  template <typename Visit>
  void ForEachIn(const ElfW(Rela) * first, uint64_t bytes, Visit visit) const {
    for (uint64_t i = 0; first != nullptr && i < bytes / sizeof(*first); ++i) {
      SlotKind kind;
      const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(first[i].r_info));
      if (symbol == 0 || !KindOf(first[i], &kind)) continue;
      visit(Slot{reinterpret_cast<uint64_t*>(base_ + first[i].r_offset), symbol, kind});
    }
  }
  static bool KindOf(const ElfW(Rela) & relocation, SlotKind* kind);

  uint64_t base_, start_ = ~uint64_t{0}, end_ = 0;
  const char* name_;
  const ElfW(Phdr) * headers_;
  int header_count_;
  const ElfW(Dyn) * dynamic_;
  DynamicSymbols symbols_;
  uint64_t protected_begin_ = 0, protected_end_ = 0;
  const ElfW(Rela) * calls_ = nullptr;
  const ElfW(Rela) * others_ = nullptr;
  uint64_t calls_bytes_ = 0, others_bytes_ = 0;
  bool has_rpath_ = false;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_GOT_SLOTS_H_
