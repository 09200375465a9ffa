#include "preload/torch/state/library_range.h"

#include <link.h>

namespace gmt::preload {
namespace {

struct Search {
  uint64_t address, begin, end;
};

int Holds(dl_phdr_info* library, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  uint64_t begin = ~uint64_t{0}, end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uint64_t at = library->dlpi_addr + header.p_vaddr;
    if (at < begin) begin = at;
    if (at + header.p_memsz > end) end = at + header.p_memsz;
  }
  if (search->address < begin || search->address >= end) return 0;
  search->begin = begin;
  search->end = end;
  return 1;
}

}  // namespace

void LibraryRange::Locate(const void* address) {
  Search search = {reinterpret_cast<uint64_t>(address), 0, 0};
  if (dl_iterate_phdr(Holds, &search) == 0) return;
  begin_.store(search.begin, std::memory_order_relaxed);
  end_.store(search.end, std::memory_order_relaxed);
}

}  // namespace gmt::preload
