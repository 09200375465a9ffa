#include "preload/stacks/unwind/loaded_module.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "preload/loader/loader.h"
#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

// The result of _dl_find_object (glibc 2.35); spelled out because older headers lack it.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* more[12];
};
using FindObject = int (*)(void* address, FoundObject* result);

// Cache: the function of libc.
constinit std::atomic<FindObject> find_object{nullptr};

// Cache: the list of all modules. `list_version` is odd while the list is being made. A reader
// checks it before and afterwards; if it has changed, the lookup fails.
struct Listed {
  std::atomic<uint64_t> start, end, bias, headers, header_count, path;
};
constexpr uint32_t kListCapacity = 2048;
constinit std::atomic<uint32_t> list_version{0}, list_size{0}, lists_wanted{0};
constinit Listed list[kListCapacity];

void Set(std::atomic<uint64_t>* field, uint64_t value) {
  field->store(value, std::memory_order_release);
}
uint64_t Get(const std::atomic<uint64_t>& field) { return field.load(std::memory_order_acquire); }

int List(dl_phdr_info* info, size_t, void* argument) {
  auto* count = static_cast<uint32_t*>(argument);
  uint64_t start = ~uint64_t{0}, end = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD) continue;
    const uint64_t first = info->dlpi_addr + h.p_vaddr, last = first + h.p_memsz;
    start = first < start ? first : start;
    end = last > end ? last : end;
  }
  Listed& place = list[*count];
  Set(&place.start, start);
  Set(&place.end, end);
  Set(&place.bias, info->dlpi_addr);
  Set(&place.headers, reinterpret_cast<uint64_t>(info->dlpi_phdr));
  Set(&place.header_count, info->dlpi_phnum);
  Set(&place.path, reinterpret_cast<uint64_t>(info->dlpi_name));
  return ++*count == kListCapacity ? 1 : 0;
}

bool FindListed(uint64_t address, LoadedModule* module) {
  const uint32_t version = list_version.load(std::memory_order_acquire);
  if ((version & 1) != 0) return false;
  const uint32_t size = list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < size; ++i) {
    const Listed& l = list[i];
    if (address < Get(l.start) || address >= Get(l.end)) continue;
    *module = {Get(l.start),
               Get(l.end),
               Get(l.bias),
               reinterpret_cast<const ElfW(Phdr)*>(Get(l.headers)),
               Get(l.header_count),
               reinterpret_cast<const char*>(Get(l.path)),
               nullptr};
    return list_version.load(std::memory_order_acquire) == version;
  }
  return false;
}

// Returns the program headers of the module mapped here, if they are certain to be in memory: on
// the same page as the file's first bytes. Returns nullptr if a tool has moved them.
const ElfW(Phdr) * HeadersAt(const void* start, uint64_t* count) {
  constexpr size_t kPage = 4096;
  const auto* elf = static_cast<const ElfW(Ehdr)*>(start);
  if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(ElfW(Phdr)) ||
      elf->e_phoff > kPage || elf->e_phnum > (kPage - elf->e_phoff) / sizeof(ElfW(Phdr))) {
    return nullptr;
  }
  *count = elf->e_phnum;
  return reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(start) + elf->e_phoff);
}

}  // namespace

Extent LoadedModule::SegmentAt(uint64_t address, uint32_t access) const {
  for (uint64_t i = 0; i < header_count; ++i) {
    const ElfW(Phdr)& h = headers[i];
    if (h.p_type != PT_LOAD || (h.p_flags & access) != access) continue;
    const uint64_t begin = bias + h.p_vaddr;
    if (address >= begin && address - begin < h.p_memsz) return {begin, begin + h.p_memsz};
  }
  return {};
}

uint64_t LoadedModule::FindSegment(uint32_t type) const {
  for (uint64_t i = 0; i < header_count; ++i) {
    if (headers[i].p_type == type) return bias + headers[i].p_vaddr;
  }
  return 0;
}

FoundModule FindLoadedModule(uint64_t address, LoadedModule* module) {
  const FindObject find = find_object.load(std::memory_order_acquire);
  if (find != nullptr) {
    FoundObject found;
    if (find(reinterpret_cast<void*>(address), &found) != 0) return FoundModule::kNothing;
    uint64_t count = 0;
    const ElfW(Phdr)* headers = HeadersAt(found.map_start, &count);
    if (headers != nullptr) {
      *module = {reinterpret_cast<uint64_t>(found.map_start),
                 reinterpret_cast<uint64_t>(found.map_end),
                 found.map->l_addr,
                 headers,
                 count,
                 found.map->l_name,
                 found.map->l_ld};
      return FoundModule::kFound;
    }
  }
  return FindListed(address, module) ? FoundModule::kFound : FoundModule::kNotListed;
}

bool IsStillLoaded(uint64_t start, uint64_t end) {
  const FindObject find = find_object.load(std::memory_order_acquire);
  if (find != nullptr) {
    FoundObject found;
    return find(reinterpret_cast<void*>(start), &found) == 0 &&
           reinterpret_cast<uint64_t>(found.map_start) == start &&
           reinterpret_cast<uint64_t>(found.map_end) == end;
  }
  LoadedModule listed;
  return FindListed(start, &listed) && listed.start == start && listed.end == end;
}

namespace {

// Operations that threads of the parent had begun when this process was forked are never finished.
void ForgetUnfinishedWork() {
  static constinit std::atomic<pid_t> process{0};
  const pid_t pid = getpid();
  if (process.exchange(pid) == pid) return;
  ForgetDoubts();
  uint32_t version = list_version.load();
  if ((version & 1) != 0) list_version.compare_exchange_strong(version, version + 1);
}

}  // namespace

void PrepareModules() {
  ForgetUnfinishedWork();
  find_object.store(reinterpret_cast<FindObject>(LibcDlsym(RTLD_DEFAULT, "_dl_find_object")),
                    std::memory_order_release);
  ListModules();
}

void ListModules() {
  lists_wanted.fetch_add(1);
  for (uint32_t made = 0; made != lists_wanted.load();) {
    uint32_t version = list_version.load();
    // The thread that is making the list sees at the end that another one has been requested.
    if ((version & 1) != 0 || !list_version.compare_exchange_strong(version, version + 1)) return;
    made = lists_wanted.load();
    list_size.store(0, std::memory_order_release);
    uint32_t count = 0;
    dl_iterate_phdr(List, &count);
    list_size.store(count, std::memory_order_release);
    list_version.store(version + 2);
  }
}

uint64_t UnloadedModules() {
  unsigned long long count = 0;
  const auto read = [](dl_phdr_info* info, size_t, void* argument) {
    *static_cast<unsigned long long*>(argument) = info->dlpi_subs;
    return 1;
  };
  dl_iterate_phdr(read, &count);
  return count;
}

}  // namespace gmt::preload
