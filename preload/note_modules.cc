#include "preload/note_modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "preload/clock.h"
#include "preload/loader.h"
#include "preload/thread_state.h"

namespace gmt::preload {
namespace {

using session::ModuleRecord;

void SetPath(const char* path, ModuleRecord* record) {
  char executable[sizeof(record->path)];
  size_t size = strlen(path);
  if (size == 0) {  // the loader leaves the main program without a name
    const ssize_t n = readlink("/proc/self/exe", executable, sizeof(executable));
    path = executable;
    size = n < 0 ? 0 : static_cast<size_t>(n);
  }
  if (size > sizeof(record->path)) {
    path += size - sizeof(record->path);
    size = sizeof(record->path);
  }
  memcpy(record->path, path, size);
  record->path_size = static_cast<uint32_t>(size);
}

// Copies the build-id out of one note segment in memory.
void SetBuildId(const char* notes, size_t size, ModuleRecord* record) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) note;
    memcpy(&note, notes + at, sizeof(note));
    const size_t name = at + sizeof(note);
    const size_t body = name + ((note.n_namesz + 3) & ~size_t{3});
    if (body > size || note.n_descsz > size - body) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(notes + name, "GNU", 4) == 0) {
      const size_t n =
          note.n_descsz < sizeof(record->build_id) ? note.n_descsz : sizeof(record->build_id);
      memcpy(record->build_id, notes + body, n);
      record->build_id_size = static_cast<uint32_t>(n);
      return;
    }
    at = body + ((note.n_descsz + 3) & ~size_t{3});
  }
}

// Tools that rewrite libraries may leave notes outside of what is loaded.
bool IsLoaded(const ElfW(Phdr) & part, const ElfW(Phdr) * headers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const ElfW(Phdr)& h = headers[i];
    if (h.p_type == PT_LOAD && (h.p_flags & PF_R) != 0 && part.p_vaddr >= h.p_vaddr &&
        part.p_vaddr - h.p_vaddr <= h.p_filesz &&
        part.p_filesz <= h.p_filesz - (part.p_vaddr - h.p_vaddr)) {
      return true;
    }
  }
  return false;
}

void SetFromHeaders(uint64_t bias, const ElfW(Phdr) * headers, size_t count, ModuleRecord* record) {
  record->bias = bias;
  for (size_t i = 0; i < count && record->build_id_size == 0; ++i) {
    if (headers[i].p_type == PT_NOTE && IsLoaded(headers[i], headers, count)) {
      SetBuildId(reinterpret_cast<const char*>(bias + headers[i].p_vaddr), headers[i].p_filesz,
                 record);
    }
  }
}

// What _dl_find_object (glibc 2.35) fills in; spelt out, because older headers lack it.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* more[12];
};
using FindObject = int (*)(void* address, FoundObject* result);

// The program headers of what is mapped here, where they are sure to be in memory: on the same page
// as the file's first bytes. nullptr where a tool has moved them.
const ElfW(Phdr) * HeadersAt(const void* start, size_t* count) {
  constexpr size_t kPage = 4096;
  const auto* elf = static_cast<const ElfW(Ehdr)*>(start);
  if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(ElfW(Phdr)) ||
      elf->e_phoff > kPage || elf->e_phnum > (kPage - elf->e_phoff) / sizeof(ElfW(Phdr))) {
    return nullptr;
  }
  *count = elf->e_phnum;
  return reinterpret_cast<const ElfW(Phdr)*>(static_cast<const char*>(start) + elf->e_phoff);
}

enum class Answer { kFound, kNothing, kAskLoader };

Answer FindLockFree(FindObject find, uint64_t address, ModuleRecord* record) {
  FoundObject found;
  if (find(reinterpret_cast<void*>(address), &found) != 0) return Answer::kNothing;
  size_t count = 0;
  const ElfW(Phdr)* headers = HeadersAt(found.map_start, &count);
  if (headers == nullptr) return Answer::kAskLoader;
  record->start = reinterpret_cast<uint64_t>(found.map_start);
  record->end = reinterpret_cast<uint64_t>(found.map_end);
  SetPath(found.map->l_name, record);
  SetFromHeaders(found.map->l_addr, headers, count, record);
  return Answer::kFound;
}

struct Search {
  uint64_t address;
  ModuleRecord* record;
};

int VisitObject(dl_phdr_info* info, size_t, void* argument) {
  const Search* search = static_cast<Search*>(argument);
  uint64_t start = ~uint64_t{0}, end = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD) continue;
    const uint64_t first = info->dlpi_addr + h.p_vaddr, last = first + h.p_memsz;
    start = first < start ? first : start;
    end = last > end ? last : end;
  }
  if (search->address < start || search->address >= end) return 0;
  search->record->start = start;
  search->record->end = end;
  SetPath(info->dlpi_name, search->record);
  SetFromHeaders(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, search->record);
  return 1;
}

bool FindModule(uint64_t address, ModuleRecord* record) {
  static constinit std::atomic<FindObject> find{nullptr};
  static constinit std::atomic<bool> looked_for{false};
  if (!looked_for.load(std::memory_order_acquire)) {
    find.store(reinterpret_cast<FindObject>(LibcDlsym(RTLD_DEFAULT, "_dl_find_object")),
               std::memory_order_relaxed);
    looked_for.store(true, std::memory_order_release);
  }
  const FindObject find_object = find.load(std::memory_order_relaxed);
  if (find_object != nullptr) {
    const Answer answer = FindLockFree(find_object, address, record);
    if (answer != Answer::kAskLoader) return answer == Answer::kFound;
  }
  Search search = {address, record};
  return dl_iterate_phdr(VisitObject, &search) == 1;
}

bool Same(const ModuleRecord& a, const ModuleRecord& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias &&
         a.build_id_size == b.build_id_size &&
         memcmp(a.build_id, b.build_id, a.build_id_size) == 0 && a.path_size == b.path_size &&
         memcmp(a.path, b.path, a.path_size) == 0;
}

}  // namespace

bool NoteModules(const Process& process, const uint64_t* frames, uint32_t depth) {
  const session::ModuleLog log = process.map.modules();
  const uint32_t generation = log.generation();
  uint64_t start = 0, end = 0;  // of the module that the frame before lay in
  for (uint32_t i = 0; i < depth; ++i) {
    if ((frames[i] & session::kInterpreterFrame) != 0) continue;
    const uint64_t address = frames[i] & ~session::kExactFrame;
    if (address >= start && address < end) continue;
    ModuleRecord found = {};
    if (!FindModule(address, &found)) continue;
    start = found.start;
    end = found.end;
    const ModuleRecord* known = log.Find(address);
    if (known != nullptr && Same(*known, found)) continue;
    found.seen_ns = NowNs();
    log.Append(found, ThreadId(process.identity));
  }
  return log.generation() != generation;
}

}  // namespace gmt::preload
