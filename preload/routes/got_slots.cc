#include "preload/routes/got_slots.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <atomic>

namespace gmt::preload {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT,
                   kAbsolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT,
                   kAbsolute = R_AARCH64_ABS64;
#endif

constexpr ElfW(Dyn) kNothing = {DT_NULL, {0}};

const ElfW(Dyn) * DynamicOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
  }
  return nullptr;
}

const char* WithoutFolder(const char* path) {
  const char* name = path;
  for (const char* p = path; *p != '\0'; ++p) {
    if (*p == '/') name = p + 1;
  }
  return name;
}

uint64_t PageSize() {
  const uint64_t reported = getauxval(AT_PAGESZ);
  return reported != 0 ? reported : 4096;
}

}  // namespace

MappedModule::MappedModule(const dl_phdr_info& info)
    : base_(info.dlpi_addr),
      name_(WithoutFolder(info.dlpi_name)),
      headers_(info.dlpi_phdr),
      header_count_(info.dlpi_phnum),
      dynamic_(DynamicOf(info)),
      symbols_(base_, dynamic_ != nullptr ? dynamic_ : &kNothing) {
  const uint64_t page = PageSize();
  for (int i = 0; i < header_count_; ++i) {
    const ElfW(Phdr)& header = headers_[i];
    const uint64_t begin = base_ + header.p_vaddr, end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      start_ = begin < start_ ? begin : start_;
      end_ = end > end_ ? end : end_;
    }
    if (header.p_type == PT_GNU_RELRO) {  // whole pages, both ends rounded down as the loader does
      protected_begin_ = begin & ~(page - 1);
      protected_end_ = end & ~(page - 1);
    }
  }
  bool calls_have_addends = true;
  for (const ElfW(Dyn)* d = dynamic_; d != nullptr && d->d_tag != DT_NULL; ++d) {
    const uint64_t address = d->d_un.d_ptr < base_ ? base_ + d->d_un.d_ptr : d->d_un.d_ptr;
    if (d->d_tag == DT_JMPREL) calls_ = reinterpret_cast<const ElfW(Rela)*>(address);
    if (d->d_tag == DT_PLTRELSZ) calls_bytes_ = d->d_un.d_val;
    if (d->d_tag == DT_PLTREL) calls_have_addends = d->d_un.d_val == DT_RELA;
    if (d->d_tag == DT_RELA) others_ = reinterpret_cast<const ElfW(Rela)*>(address);
    if (d->d_tag == DT_RELASZ) others_bytes_ = d->d_un.d_val;
    if (d->d_tag == DT_RPATH) has_rpath_ = true;
  }
  if (!calls_have_addends) calls_ = nullptr;
}

bool MappedModule::KindOf(const ElfW(Rela) & relocation, SlotKind* kind) {
  const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
  if (relocation.r_offset % sizeof(uint64_t) != 0) return false;  // cannot be stored in one piece
  if (type == kJumpSlot) *kind = SlotKind::kCall;
  if (type == kGlobalData) *kind = SlotKind::kAddress;
  if (type == kAbsolute) *kind = SlotKind::kData;
  return type == kJumpSlot || type == kGlobalData ||
         (type == kAbsolute && relocation.r_addend == 0);
}

uint64_t MappedModule::Fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (const ElfW(Dyn)* d = dynamic_; d != nullptr && d->d_tag != DT_NULL; ++d) {
    // The loader writes this word, for debuggers, after the start.
    if (d->d_tag == DT_DEBUG) continue;
    hash = (hash ^ static_cast<uint64_t>(d->d_tag)) * 0x100000001b3;
    hash = (hash ^ d->d_un.d_val) * 0x100000001b3;
  }
  return hash;
}

bool MappedModule::IsProtected(const uint64_t* slot) const {
  const auto address = reinterpret_cast<uint64_t>(slot);
  return address >= protected_begin_ && address < protected_end_;
}

uint64_t MappedModule::EndOfSlots(uint64_t begin, uint64_t end) const {
  uint64_t first = begin;
  if (protected_end_ > first && protected_end_ <= end) first = protected_end_;
  ForEachSlot([&](const Slot& slot) {
    if (slot.kind == SlotKind::kData) return;
    const auto behind = reinterpret_cast<uint64_t>(slot.place + 1);
    if (behind > first && behind <= end) first = behind;
  });
  return first;
}

bool MappedModule::Store(uint64_t* slot, uint64_t value) const {
  const auto address = reinterpret_cast<uint64_t>(slot);
  if (IsProtected(slot)) {
    const uint64_t page_size = PageSize();
    void* const page = reinterpret_cast<void*>(address & ~(page_size - 1));
    if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
    std::atomic_ref(*slot).store(value, std::memory_order_release);
    mprotect(page, page_size, PROT_READ);
    return true;
  }
  for (int i = 0; i < header_count_; ++i) {
    const ElfW(Phdr)& header = headers_[i];
    const uint64_t begin = base_ + header.p_vaddr;
    if (header.p_type != PT_LOAD || address < begin || address - begin >= header.p_memsz) continue;
    if ((header.p_flags & PF_W) == 0) return false;
    std::atomic_ref(*slot).store(value, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace gmt::preload
