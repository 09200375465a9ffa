// dlsym and dlvsym: programs that look up CUDA functions get our hooks around the functions that
// they would have got.
//
// The loader identifies the caller by the return address, on which RTLD_NEXT and RTLD_DEFAULT
// depend. The exported functions are therefore a few lines of assembly that determine a target and
// jump, with the caller's arguments and return address, to the real function. Only lookups of
// hooked names in a specific library are answered from here, because for these the caller does not
// matter.
//
//   lookup                        answer
//   a name that is not hooked     the real dlsym, by a jump
//   RTLD_NEXT, RTLD_DEFAULT       same: an export of ours, if the loader finds one; nothing if no
//                                 other library has the function, so that our exports do not make
//                                 CUDA seem present
//   a library                     a hook for the function found there; dlopen(NULL) as above
//
// If this library was opened late (preload/routes/got_patch.h), the loader does not find its
// exports, and RTLD_DEFAULT is answered like a library.
//
// `dlerror` is left as the real function set it.

#include <string.h>

#include <atomic>

#include "preload/base/export.h"
#include "preload/loader/jumping.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/routes/got_patch.h"
#include "preload/routes/hook_lookup.h"

namespace gmt::preload {
namespace {

// Cache: whether that has ever happened.
constinit std::atomic<bool> driver_was_looked_up{false};

bool MayBeHooked(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

// For a library that was opened late, of whose exports the loader finds none. A library that looks
// up the next function precedes others, as another profiler's does: it gets the real one, and it is
// itself called by the intercepted callers. Globally visible functions are found from here just as
// well, but those visible only to libraries loaded together with the caller are not.
template <typename LookUp>
Choice ChooseLate(const Choice& jump, void* handle, const char* name, LookUp look_up) {
  if (handle == RTLD_NEXT) return jump;
  void* function = look_up(handle);
  if (function == nullptr && handle == RTLD_DEFAULT) return jump;
  return {nullptr, function == nullptr ? nullptr : HookFor(name, function)};
}

// `look_up(handle)` is the real function, called from here.
template <typename LookUp>
Choice Choose(const char* real_name, void* handle, const char* name, LookUp look_up) {
  void* const real = NextLoaderFunction(real_name);
  if (real == nullptr) return {};
  if (Patching()) PatchNewModules();
  const Choice jump = {real, nullptr};
  if (!MayBeHooked(name)) return jump;
  if (strcmp(name, "cuInit") == 0) driver_was_looked_up.store(true, std::memory_order_relaxed);
  if (!IsHooked(name)) return jump;
  if (Patching()) return ChooseLate(jump, handle, name, look_up);
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    if (DefinedByAnotherLibrary(name)) return jump;
    look_up(RTLD_NEXT);  // fails, and sets the error
    return {};
  }
  void* function = look_up(handle);
  if (function == nullptr) return {};
  if (!InOwnImage(function)) return {nullptr, HookFor(name, function)};
  // The handle of the program and its initial libraries, which include this one.
  return {nullptr, look_up(RTLD_NEXT) == nullptr ? nullptr : function};
}

}  // namespace

bool DriverWasLookedUp() { return driver_was_looked_up.load(std::memory_order_relaxed); }

}  // namespace gmt::preload

GMT_INTERNAL gmt::preload::Choice GmtChooseDlsym(void* handle, const char* name) {
  return gmt::preload::Choose("dlsym", handle, name,
                              [name](void* where) { return gmt::preload::LibcDlsym(where, name); });
}

GMT_INTERNAL gmt::preload::Choice GmtChooseDlvsym(void* handle, const char* name,
                                                  const char* version) {
  return gmt::preload::Choose("dlvsym", handle, name, [=](void* where) {
    return gmt::preload::LibcDlvsym(where, name, version);
  });
}

GMT_JUMPING(dlsym, GmtChooseDlsym);
GMT_JUMPING(dlvsym, GmtChooseDlvsym);
