// preload/routes/got_slots.h
//
// MappedModule: one loaded module, as far as it takes to change what its calls of other libraries
// lead to: where it lies, its symbols, its slots (words that the loader fills in with a function's
// address), and storing into them.
//
//   slot      relocation     where it stands
//   call      JUMP_SLOT      .got.plt, or .got where everything is bound at once; RELRO then
//   address   GLOB_DAT       .got; RELRO
//   data      64 bits, abs.  tables of functions in .data or .data.rel.ro
//
// A store is one aligned word of 8 bytes, so a thread that calls through the slot meanwhile reaches
// the old function or the new one. Pages that the loader has write-protected (PT_GNU_RELRO) are made
// writable for the moment, and write-protected again.
//
// Thread safety: REQUIRES that the module cannot go meanwhile and that one thread at a time stores:
// to be used inside of dl_iterate_phdr, under whose lock both is so.

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
  // The file's name without its folder; "" for the program itself.
  const char* name() const { return name_; }
  bool Contains(uint64_t address) const { return address >= start_ && address < end_; }

  // Its symbols are to be looked for in the loaders' of those that come after it, too.
  bool has_rpath() const { return has_rpath_; }
  // Tells the file in this place from another one that may be loaded there later.
  uint64_t Fingerprint() const;

  enum class SlotKind { kCall, kAddress, kData };
  struct Slot {
    uint64_t* place;
    uint32_t symbol;  // its index
    SlotKind kind;
  };
  // visit(const Slot&) for each slot for a symbol.
  template <typename Visit>
  void ForEachSlot(Visit visit) const {
    ForEachIn(calls_, calls_bytes_, visit);
    ForEachIn(others_, others_bytes_, visit);
  }

  // Of its writable memory from `begin` to `end`: where what is neither write-protected nor the table of
  // calls begins.
  uint64_t EndOfSlots(uint64_t begin, uint64_t end) const;

  // Whether the loader has write-protected the slot: what is in there is as the loader left it.
  bool IsProtected(const uint64_t* slot) const;

  // False where that cannot be: code that is relocated in place, or the kernel refuses.
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
