// preload/routes/got_patch.h
//
// Catching calls where this library was opened late, and so stands in front of nobody: the slots
// (preload/routes/got_slots.h) of the modules that are loaded, and of those that are loaded later, are made
// to lead to the functions that this library exports.
//
//   which slots     for each name that we export, under the version that the caller asks for: that
//                   tells its runtime. dlsym among them, so that what is looked up is caught, too
//   what is behind  what the slot led to before: another preloaded library, or the runtime that this
//                   very caller is bound to. A slot that the loader has not filled in yet (lazy
//                   binding) tells nothing; its function is looked for at the first call
//   which modules   all but this one, other copies of it, the loader, libc, sanitizers, and NVIDIA's
//                   driver and tools, whose ways among themselves are theirs
//   later ones      looked for at each dlopen and dlsym that is caught (preload/routes/dlopen.cc)
//
// A module that another thread is just loading must be left alone: the loader adds to what stands in
// its slots, and write-protects them when it is done, which nobody tells. So all of this happens under
// the lock under which libraries are loaded and unloaded. A thread that is binding a slot lazily at that moment overwrites it; such a module is looked at
// again the next time.
//
// RestoreSlots() puts back what stood there, where a slot still leads to the hook that was put into
// it, in modules that are still loaded. The library itself stays: return addresses inside hooks, and
// pointers that were handed out, are good for ever.
//
// Thread safety: all functions from any thread. Cost: docs/routes.md.

#ifndef GMT_PRELOAD_ROUTES_GOT_PATCH_H_
#define GMT_PRELOAD_ROUTES_GOT_PATCH_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

struct Patched {
  uint32_t modules;   // whose slots were looked at
  uint32_t caught;    // of which calls are caught now
  uint32_t slots;     // that lead here
  uint32_t refused;   // that the kernel would not have changed, or that are part of the code
  uint32_t overflow;  // modules for which there was no room on the list
  uint32_t kept;      // slots that could not be put back
};

// Once PatchNewModules has been called.
bool Patching();

// Patches what has been loaded since the last call; what was there before, at the first. Takes the
// loader's locks: not in hooks of the GPU. Where nothing is new it costs a look at the loader's count.
void PatchNewModules();

Patched WhatIsPatched();

// Until PatchNewModules() is called again, which then patches what it did before. Nothing where somebody
// has asked for an attach meanwhile: one of the two sees the other (session/layout.h, slots_restored).
// REQUIRES: a session with a door.
void RestoreSlots();

// Whether a module outside the program had DT_RPATH: where libraries are looked for then depends on
// who opens them.
bool AnyModuleHasRpath();

// Whether calls of a module of that file name are left alone.
bool IsLeftAlone(const char* file_name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_GOT_PATCH_H_
