#include "preload/record/note_modules.h"

#include <elf.h>
#include <link.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/stacks/greenlets.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

using session::ModuleRecord;

// Cache: the version of known_modules. Incremented before a library may be unloaded, and after one
// has been.
constinit std::atomic<uint64_t> closed_libraries{0};

// The loader has no name for the main program.
void SetProgramPath(ModuleRecord* record) {
  const ssize_t n = readlink("/proc/self/exe", record->path, sizeof(record->path));
  record->path_size = n < 0 ? 0 : static_cast<uint32_t>(n);
}

void SetPath(const char* path, ModuleRecord* record) {
  size_t size = strlen(path);
  if (size == 0) return SetProgramPath(record);
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

// Tools that rewrite libraries may leave notes outside the loaded segments.
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

void Describe(const LoadedModule& module, ModuleRecord* record) {
  *record = {};
  record->start = module.start;
  record->end = module.end;
  record->bias = module.bias;
  SetPath(module.path, record);
  for (uint64_t i = 0; i < module.header_count && record->build_id_size == 0; ++i) {
    const ElfW(Phdr)& h = module.headers[i];
    if (h.p_type == PT_NOTE && IsLoaded(h, module.headers, module.header_count)) {
      SetBuildId(reinterpret_cast<const char*>(module.bias + h.p_vaddr), h.p_filesz, record);
    }
  }
}

// Cache: modules known to be in the log, as fingerprints of everything that distinguishes them
// within this process until the next library is unloaded, the process's identity included.
// Describing a module takes a microsecond, and a new stack refers to a dozen.
constexpr uint32_t kKnownModules = 512;
constinit std::atomic<uint64_t> known_modules[kKnownModules];

uint64_t Fingerprint(const Process& process, const LoadedModule& m) {
  const uint64_t words[] = {m.start,
                            m.end,
                            m.bias,
                            reinterpret_cast<uint64_t>(m.path),
                            reinterpret_cast<uint64_t>(m.dynamic),
                            process.identity,
                            closed_libraries.load(std::memory_order_acquire)};
  uint64_t hash = 0;
  for (const uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

std::atomic<uint64_t>* PlaceOf(const LoadedModule& m) {
  return &known_modules[(m.start ^ m.start >> 9) / 4096 % kKnownModules];
}

// Adds the module at `address` unless it is in the log. Returns true if walks know more than
// before.
bool Enter(const Process& process, const LoadedModule& module, uint64_t address) {
  const session::ModuleLog log = process.map.modules();
  const uint64_t fingerprint = Fingerprint(process, module);
  if (PlaceOf(module)->load(std::memory_order_acquire) == fingerprint) return false;
  const bool walks_know_more = Greenlets::Note(module);
  ModuleRecord record;
  Describe(module, &record);
  const ModuleRecord* known = log.Find(address);
  if (known == nullptr || !session::ModuleLog::AreSame(*known, record)) {
    // A module was unloaded without being noticed, for example by a call of dlclose inside libc.
    if (known != nullptr && !session::ModuleLog::IsGone(*known)) RulesChanged();
    record.seen_ns = NowNs();
    if (!log.Append(record, ThreadId(process.identity))) return walks_know_more;
  }
  PlaceOf(module)->store(fingerprint, std::memory_order_release);
  return walks_know_more;
}

// The modules that contain frames of one stack. If there are too many, some are looked up again.
class Visited {
 public:
  bool Holds(uint64_t address) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (address >= parts_[i].begin && address < parts_[i].end) return true;
    }
    return false;
  }
  void Add(uint64_t begin, uint64_t end) {
    parts_[count_ < kRoom ? count_++ : kRoom - 1] = {begin, end};
  }

 private:
  static constexpr uint32_t kRoom = 24;
  Extent parts_[kRoom];
  uint32_t count_ = 0;
};

}  // namespace

bool NoteModules(const Process& process, const uint64_t* frames, uint32_t depth) {
  const uint32_t generation = process.map.modules().generation();
  Visited visited;
  bool listed = false, walks_know_more = false;
  for (uint32_t i = 0; i < depth; ++i) {
    if ((frames[i] & session::kInterpreterFrame) != 0) continue;
    const uint64_t address = frames[i] & ~session::kExactFrame;
    if (visited.Holds(address)) continue;
    LoadedModule module;
    FoundModule found = FindLoadedModule(address, &module);
    if (found == FoundModule::kNotListed && !listed) {
      listed = true;
      ListModules();
      found = FindLoadedModule(address, &module);
    }
    if (found != FoundModule::kFound) continue;
    visited.Add(module.start, module.end);
    walks_know_more |= Enter(process, module, address);
  }
  return walks_know_more || process.map.modules().generation() != generation;
}

void RecheckKnownModules() { closed_libraries.fetch_add(1); }

void NoteGoneModules(const Process& process) {
  RecheckKnownModules();
  const session::ModuleLog log = process.map.modules();
  for (uint32_t i = 0; i < log.count(); ++i) {
    const ModuleRecord& r = log.record(i);
    // Not if another record has already taken over the addresses.
    if (session::ModuleLog::IsGone(r) || log.Find(r.start) != &r || IsStillLoaded(r.start, r.end)) {
      continue;
    }
    ModuleRecord gone = {};
    gone.start = r.start;
    gone.end = r.end;
    gone.seen_ns = NowNs();
    // Another thread may be appending. This is not a hook, so it can wait a while.
    for (int tries = 0; tries < 100 && !log.Append(gone, ThreadId(process.identity)); ++tries) {
      if (log.full()) return;
      sched_yield();
    }
  }
}

}  // namespace gmt::preload
