// preload/routes/got_patch.h
//
// Intercepts calls if this library was opened late and therefore precedes no other in symbol
// lookup: redirects the slots (preload/routes/got_slots.h) of all modules, both loaded and loaded
// later, to the functions that this library exports.
//
//   which slots     those of each name that we export, under the version that the caller requests,
//                   which identifies its runtime. dlsym is one of them, so lookups are intercepted
//   real function   what the slot led to before: another preloaded library, or the runtime that
//                   this caller is bound to. If the loader has not yet filled in the slot (lazy
//                   binding), the real function is looked up at the first call
//   which modules   all but this one, other copies of it, the loader, libc, sanitizers, and
//                   NVIDIA's driver and tools, whose internal calls are left alone
//   later modules   found at each intercepted dlopen and dlsym (preload/routes/dlopen.cc)
//
// A module that another thread is currently loading must not be touched: the loader adds to the
// contents of its slots and write-protects them when it is done, without notification. Therefore
// all of this happens under the lock that serializes loading and unloading. A thread that lazily
// binds a slot at that moment overwrites it; such a module is checked again the next time.
//
// RestoreSlots() restores the original values of slots that still lead to our hooks, in modules
// that are still loaded. The library itself stays loaded, because return addresses inside hooks and
// pointers that were handed out remain in use.
//
// Thread safety: all functions may be called from any thread. Cost: docs/routes.md.

#ifndef GMT_PRELOAD_ROUTES_GOT_PATCH_H_
#define GMT_PRELOAD_ROUTES_GOT_PATCH_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

struct PatchCounts {
  uint32_t modules;   // whose slots were examined
  uint32_t caught;    // whose calls are now intercepted
  uint32_t slots;     // slots redirected to this library
  uint32_t refused;   // slots that the kernel refused to change, or that are part of the code
  uint32_t overflow;  // modules that did not fit in the list
  uint32_t kept;      // slots that could not be restored
};

// Returns whether PatchNewModules() has been called.
bool Patching();

// Patches the modules that have been loaded since the last call; at the first call, all loaded
// modules. Takes the loader's locks, so it must not be called in hooks of GPU functions. If nothing
// is new, it costs one check of the loader's count.
void PatchNewModules();

PatchCounts GetPatchCounts();

// Restores the slots until PatchNewModules() is called again, which then patches them again. Does
// nothing if a client has requested an attach meanwhile: one of the two sees the other
// (session/layout.h, slots_restored). REQUIRES: a session with an attach gate.
void RestoreSlots();

// Returns whether a module other than the program has DT_RPATH. In that case the search path of
// dlopen depends on its caller.
bool AnyModuleHasRpath();

// Returns whether calls of a module of that file name are left alone.
bool IsLeftAlone(const char* file_name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_GOT_PATCH_H_
