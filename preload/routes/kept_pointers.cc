#include "preload/routes/kept_pointers.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/loader/own_image.h"
#include "preload/routes/got_patch.h"
#include "preload/routes/got_slots.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kMaxRead = uint64_t{64} << 20;  // per segment
constexpr size_t kPieceBytes = 256 << 10;          // bytes read at a time

struct Range {
  uint64_t begin = 0, end = 0;
  bool Contains(uint64_t address) const { return address >= begin && address < end; }
};

struct Search {
  Range driver;  // the driver's code
  uint64_t* piece;
  char* text;
  size_t capacity;
  int count;
};

bool BeginsWith(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

int FindDriver(dl_phdr_info* info, size_t, void* argument) {
  const MappedModule module(*info);
  if (!BeginsWith(module.name(), "libcuda.so")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const uint64_t begin = info->dlpi_addr + header.p_vaddr;
    *static_cast<Range*>(argument) = {begin, begin + header.p_memsz};
  }
  return 1;
}

bool PointsInto(const Search& search, uint64_t begin, uint64_t bytes) {
  begin = (begin + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);
  for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += kPieceBytes) {
    const size_t size = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
    const iovec here = {search.piece, size}, there = {reinterpret_cast<void*>(begin + at), size};
    const ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    for (size_t i = 0; n > 0 && i < static_cast<size_t>(n) / sizeof(uint64_t); ++i) {
      if (search.driver.Contains(search.piece[i])) return true;
    }
  }
  return false;
}

// Its slots do not count: they lead to us, or the loader changes them for other libraries.
bool KeepsPointers(const dl_phdr_info& info, const MappedModule& module, const Search& search) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    uint64_t begin = info.dlpi_addr + header.p_vaddr;
    const uint64_t end = begin + header.p_memsz;
    begin = module.EndOfSlots(begin, end);
    const uint64_t bytes = end - begin;
    if (PointsInto(search, begin, bytes < kMaxRead ? bytes : kMaxRead)) return true;
  }
  return false;
}

int Look(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const MappedModule module(*info);
  const char* name = module.name();
  if (IsLeftAlone(name) || BeginsWith(name, "libcudart.so") || InOwnImage(module.dynamic()) ||
      !KeepsPointers(*info, module, *search)) {
    return 0;
  }
  const int n = snprintf(search->text, search->capacity, "%s%s", search->count++ == 0 ? "" : ", ",
                         name[0] == '\0' ? "the program" : name);
  const size_t written = n < 0 ? 0 : static_cast<size_t>(n);
  const size_t moved = written < search->capacity ? written : search->capacity;
  search->text += moved;
  search->capacity -= moved;
  return 0;
}

}  // namespace

int FindKeptPointers(char* text, size_t capacity) {
  if (capacity != 0) text[0] = '\0';
  Search search = {{}, nullptr, text, capacity, 0};
  if (dl_iterate_phdr(FindDriver, &search.driver) == 0) return 0;
  void* const piece =
      mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return 0;
  search.piece = static_cast<uint64_t*>(piece);
  dl_iterate_phdr(Look, &search);
  munmap(piece, kPieceBytes);
  return search.count;
}

}  // namespace gmt::preload
