#include "preload/routes/got_patch.h"

#include <string.h>

#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/loader/real_function.h"
#include "preload/process/process.h"
#include "preload/record/record_event.h"
#include "preload/routes/dlopen.h"
#include "preload/routes/got_slots.h"
#include "preload/routes/hook_lookup.h"

namespace gmt::preload {
namespace {

constexpr int kMaxRounds = 8;  // limit if other threads keep loading libraries
constexpr uint32_t kCapacity = 4096;
constexpr uint32_t kMaxKept = 1024;
static_assert((kCapacity & (kCapacity - 1)) == 0);

// Cache: known modules. All variables of this file say what was changed in the memory of the
// process, of which a fork child has a copy; they are changed under the lock of the loader's list.
struct Known {
  uint64_t base, dynamic, fingerprint;
  uint64_t* slot;  // a slot that leads here, if there is one
  uint32_t slots;  // number of slots that lead here
  bool used;       // whether this entry is in use
  bool patched;
  bool once_more;  // a slot was changed while a thread may have been binding it
};
constinit Known known[kCapacity] = {};
constinit uint32_t known_count = 0;
constinit PatchCounts patched_so_far = {};

// Cache: slots that were changed.
struct Changed {
  uint64_t* place;
  uint64_t before, hook;
};
constexpr uint32_t kMaxChanged = 32768;
constinit Changed changed[kMaxChanged] = {};
constinit uint32_t changed_count = 0;

// Cache: functions that slots led to; their libraries must stay loaded.
constinit void* to_keep[kMaxKept] = {};
constinit uint32_t to_keep_count = 0;

// Cache: how far modules have been patched.
constinit std::atomic<bool> patching{false}, any_rpath{false};
constinit std::atomic<uint32_t> passes{0};
constinit std::atomic<unsigned long long> last_adds{0}, last_subs{0};

bool BeginsWith(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

// ---- One slot -----------------------------------------------------------------------------------

// Returns the function to which calls of `name` are redirected; nullptr: leave them alone.
void* Replacement(const DynamicSymbols& own, const char* name, const char* version) {
  if (Same(name, "dlopen")) return LateDlopen();
  if (own.has_hash() && !own.MayDefine(GnuHash(name))) return nullptr;
  // Lookups that concern only this library, and entry points that other tools define, too.
  if (BeginsWith(name, "gpumemtrace_") || BeginsWith(name, "InitializeInjection")) return nullptr;
  return own.Find(name, version);
}

// What patching a module needs to know about other modules.
struct Others {
  const DynamicSymbols own{reinterpret_cast<uint64_t>(__ehdr_start), _DYNAMIC};
  const MappedModule program;  // the first of the loader's list
};

// Returns whether the address is a function of that name in the module that contains it.
bool IsDefinition(uint64_t address, const char* name) {
  struct Question {
    uint64_t address;
    const char* name;
  } question = {address, name};
  const auto look = [](dl_phdr_info* info, size_t, void* argument) {
    const auto* q = static_cast<const Question*>(argument);
    const MappedModule module(*info);
    if (!module.Contains(q->address)) return 0;
    return module.has_symbols() && module.symbols().Find(q->name) != nullptr ? 1 : 2;
  };
  return dl_iterate_phdr(look, &question) == 1;
}

// Returns whether the slot contains not a function but an indirection that would come back here:
// the slot's own entry of the procedure linkage table, before the loader has bound it, or an entry
// of the program's, which is the function's address in all modules if the program is not
// position-independent.
bool IsDetour(const MappedModule& module, const MappedModule& program, uint32_t symbol,
              uint64_t address, const char* name) {
  if (module.Contains(address)) return !module.symbols().IsDefined(symbol);
  return program.Contains(address) && program.symbols().Find(name) == nullptr;
}

void Keep(uint64_t function) {
  void* const address = reinterpret_cast<void*>(function);
  for (uint32_t i = 0; i < to_keep_count; ++i) {
    if (to_keep[i] == address) return;
  }
  if (to_keep_count < kMaxKept) to_keep[to_keep_count++] = address;
}

void Remember(const Changed& slot) {
  if (changed_count < kMaxChanged) {
    changed[changed_count++] = slot;
  } else {
    ++patched_so_far.kept;
  }
}

void PatchSlot(const MappedModule& module, const Others& others, const MappedModule::Slot& slot,
               Known* entry) {
  const char* const name = module.symbols().Name(slot.symbol);
  const char* const version = module.symbols().Version(slot.symbol);
  void* const own = Replacement(others.own, name, version);
  if (own == nullptr) return;
  const uint64_t before = std::atomic_ref(*slot.place).load(std::memory_order_acquire);
  if (before == 0) return;  // a weak reference to a missing symbol
  if (InOwnImage(before)) {
    entry->slot = slot.place;
    ++entry->slots;
    return;
  }
  const bool data = slot.kind == MappedModule::SlotKind::kData;
  // The program may have stored a pointer of its own there.
  if (data && !module.IsProtected(slot.place) && !IsDefinition(before, name)) return;
  const bool detour = IsDetour(module, others.program, slot.symbol, before, name);
  if (detour && slot.kind != MappedModule::SlotKind::kCall && module.Contains(before)) return;
  void* const hook =
      HookInFrontOf(name, version, own, detour ? nullptr : reinterpret_cast<void*>(before));
  if (!module.Store(slot.place, reinterpret_cast<uint64_t>(hook))) {
    ++patched_so_far.refused;
    return;
  }
  Remember({slot.place, before, reinterpret_cast<uint64_t>(hook)});
  if (detour) entry->once_more = true;
  if (!detour) Keep(before);
  if (!InOwnImage(hook)) return;
  entry->slot = slot.place;
  ++entry->slots;
}

// ---- One module ---------------------------------------------------------------------------------

bool IsCopyOfThisLibrary(const MappedModule& module) {
  return InOwnImage(module.dynamic()) || module.symbols().Find("gpumemtrace_catching") != nullptr;
}

void PatchModule(const MappedModule& module, const Others& others, Known* entry) {
  patched_so_far.slots -= entry->slots;
  patched_so_far.caught -= entry->slots != 0;
  entry->slots = 0;
  entry->patched = true;
  if (!module.has_symbols() || IsLeftAlone(module.name()) || IsCopyOfThisLibrary(module)) return;
  module.ForEachSlot(
      [&](const MappedModule::Slot& slot) { PatchSlot(module, others, slot, entry); });
  patched_so_far.slots += entry->slots;
  patched_so_far.caught += entry->slots != 0;
}

Known* Place(uint64_t base, uint64_t dynamic) {
  uint64_t hash = (base ^ dynamic * 31) >> 4;
  hash = (hash * 0x9e3779b97f4a7c15) >> 40;
  for (uint32_t i = 0; i < kCapacity; ++i) {
    Known* entry = &known[(hash + i) & (kCapacity - 1)];
    if (!entry->used || (entry->base == base && entry->dynamic == dynamic)) return entry;
  }
  return nullptr;
}

bool StillLeadsHere(const Known& entry) {
  return entry.slot == nullptr ||
         InOwnImage(std::atomic_ref(*entry.slot).load(std::memory_order_acquire));
}

// Returns the module's entry, marked as not patched if it must be patched (again). Returns nullptr
// if there is no room.
Known* Enter(const MappedModule& module) {
  Known* entry = Place(module.base(), module.dynamic());
  if (entry == nullptr || (!entry->used && known_count == kCapacity / 4 * 3)) {
    ++patched_so_far.overflow;
    return nullptr;
  }
  const uint64_t fingerprint = module.Fingerprint();
  const bool is_new = !entry->used;
  if (!is_new && entry->fingerprint == fingerprint && StillLeadsHere(*entry)) {
    if (entry->once_more) entry->patched = entry->once_more = false;
    return entry;
  }
  known_count += is_new;
  patched_so_far.modules += is_new;
  patched_so_far.slots -= entry->slots;
  patched_so_far.caught -= entry->slots != 0;
  *entry = {module.base(), module.dynamic(), fingerprint, nullptr, 0, true, false, false};
  return entry;
}

// ---- All modules --------------------------------------------------------------------------------

bool IsNew(const dl_phdr_info& list) {
  return last_adds.load(std::memory_order_acquire) != list.dlpi_adds ||
         last_subs.load(std::memory_order_acquire) != list.dlpi_subs;
}

bool AnythingNew() {
  const auto ask = [](dl_phdr_info* list, size_t, void*) { return IsNew(*list) ? 1 : 2; };
  return dl_iterate_phdr(ask, nullptr) == 1;
}

int PatchOne(dl_phdr_info* info, size_t, void* others) {
  const MappedModule module(*info);
  if (module.has_rpath() && module.name()[0] != '\0')
    any_rpath.store(true, std::memory_order_relaxed);
  Known* entry = Enter(module);
  if (entry != nullptr && !entry->patched)
    PatchModule(module, *static_cast<const Others*>(others), entry);
  return 0;
}

// Sets the flag that the session shows to attaching clients; returns its previous value. REQUIRES:
// the lock of the loader's list.
uint32_t NoteRestored(uint32_t restored) {
  Process* p = Process::IfAttachable();
  return p == nullptr ? 0 : p->map.control().slots_restored.exchange(restored);
}

bool IsWanted() {
  const Process* p = Process::IfAttachable();
  return p != nullptr && p->attach_gate.wanted->load() != 0;
}

// REQUIRES: no other thread loads or unloads a library meanwhile. The list's own lock does not
// ensure this: a module is in the list before its slots are filled, and an unloaded module may be
// loaded again at the same address.
void PatchAll() {
  const auto patch = [](dl_phdr_info* program, size_t, void*) {
    if (!IsNew(*program)) return 1;
    NoteRestored(0);
    Others others = {.program = MappedModule(*program)};
    dl_iterate_phdr(PatchOne, &others);
    last_subs.store(program->dlpi_subs, std::memory_order_release);
    last_adds.store(program->dlpi_adds, std::memory_order_release);
    return 1;
  };
  dl_iterate_phdr(patch, nullptr);
  passes.fetch_add(1, std::memory_order_release);
}

void KeepRealFunctions() {
  void* functions[kMaxKept];
  struct Taken {
    void** functions;
    uint32_t count;
  } taken = {functions, 0};
  const auto take = [](dl_phdr_info*, size_t, void* argument) {
    auto* t = static_cast<Taken*>(argument);
    t->count = to_keep_count;
    memcpy(t->functions, to_keep, to_keep_count * sizeof(void*));
    to_keep_count = 0;
    return 1;
  };
  dl_iterate_phdr(take, &taken);
  for (uint32_t i = 0; i < taken.count; ++i) KeepLoaded(functions[i]);
}

// Returns false if nothing has changed since the last call, or if the loader does not find this
// library.
bool PatchOnce() {
  if (!AnythingNew()) return false;
  const uint32_t before = passes.load(std::memory_order_acquire);
  const auto done = [&] { return passes.load(std::memory_order_acquire) != before; };
  // If this library was loaded as a dependency of the opened one, there is no handle for it.
  for (void* handle : {OwnHandle(), RTLD_DEFAULT}) {
    if (!done()) LibcDlsym(handle, "gpumemtrace_patch");
  }
  KeepRealFunctions();
  return done();
}

// ---- Restoring ----------------------------------------------------------------------------------

// A module that replaced an unloaded one at its address has no hook of ours in the old slots.
int RestoreOne(dl_phdr_info* info, size_t, void*) {
  const MappedModule module(*info);
  for (uint32_t i = changed_count;
       i-- > 0;) {  // newest first: of two modules at one address, the later one
    const Changed& slot = changed[i];
    if (!module.Contains(reinterpret_cast<uint64_t>(slot.place)) ||
        std::atomic_ref(*slot.place).load(std::memory_order_acquire) != slot.hook) {
      continue;
    }
    if (!module.Store(slot.place, slot.before)) ++patched_so_far.kept;
  }
  return 0;
}

// REQUIRES: the lock of the loader's list.
void ForgetPatches() {
  for (Known& entry : known) {
    entry.slot = nullptr;
    entry.slots = 0;
    entry.patched = entry.once_more = false;
  }
  changed_count = 0;
  patched_so_far.slots = patched_so_far.caught = 0;
  last_adds.store(0, std::memory_order_release);
  last_subs.store(0, std::memory_order_release);
}

}  // namespace

}  // namespace gmt::preload

// A lookup of gpumemtrace_patch calls this function to resolve it (STT_GNU_IFUNC), while holding
// the loader's lock. There is no other way to run under that lock.
extern "C" {
static void (*GmtPatchUnderLoaderLock())() {
  if (gmt::preload::Patching()) gmt::preload::PatchAll();
  return &gmt::preload::PatchNewModules;
}
__attribute__((visibility("default"), ifunc("GmtPatchUnderLoaderLock"))) void gpumemtrace_patch();
}

namespace gmt::preload {

void RestoreSlots() {
  const KeepErrno keep;
  const auto restore = [](dl_phdr_info*, size_t, void*) {
    const uint32_t before = NoteRestored(1);  // first, so that a client that asks later sees it
    if (IsWanted()) {
      NoteRestored(before);
      return 1;
    }
    patching.store(false, std::memory_order_relaxed);
    patched_so_far.kept = 0;
    dl_iterate_phdr(RestoreOne, nullptr);
    ForgetPatches();
    return 1;
  };
  dl_iterate_phdr(restore, nullptr);
}

bool Patching() { return patching.load(std::memory_order_relaxed); }

void PatchNewModules() {
  const KeepErrno keep;
  patching.store(true, std::memory_order_relaxed);
  for (int round = 0; round < kMaxRounds && PatchOnce(); ++round) {
  }
}

PatchCounts GetPatchCounts() {
  PatchCounts result = {};
  const auto copy = [](dl_phdr_info*, size_t, void* argument) {
    *static_cast<PatchCounts*>(argument) = patched_so_far;
    return 1;
  };
  dl_iterate_phdr(copy, &result);
  return result;
}

bool AnyModuleHasRpath() { return any_rpath.load(std::memory_order_relaxed); }

bool IsLeftAlone(const char* name) {
  constexpr const char* kBeginnings[] = {
      "ld-linux", "ld64.so",  "libc.so",    "libdl.so",   "libpthread.so",   "linux-vdso",
      "libcuda.", "libcupti", "libnvidia-", "libnvperf_", "libcudadebugger", "libasan.",
      "libtsan.", "liblsan.", "libubsan.",  "libmsan.",   "libclang_rt."};
  for (const char* beginning : kBeginnings) {
    if (BeginsWith(name, beginning)) return true;
  }
  return false;
}

}  // namespace gmt::preload
