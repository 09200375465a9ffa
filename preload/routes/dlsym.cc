// dlsym and dlvsym: programs that look CUDA's functions up get our hooks around what they would
// have got.
//
// The loader tells by the return address who asks: RTLD_NEXT and RTLD_DEFAULT depend on it. So the
// exported functions are a few lines of assembly that ask where to go and then jump, with the
// caller's arguments and return address, to the real function; only lookups of hooked names in a
// library of the caller's choice are answered from here, for which nobody's identity matters.
//
//   asked for                     answer
//   a name that is not hooked     the real dlsym, by a jump
//   RTLD_NEXT, RTLD_DEFAULT       the same: an export of ours, where the loader finds that; nothing
//                                 where no library has the function, so that CUDA does not look
//                                 present by our presence
//   a library                     a hook for the function found there; dlopen(NULL) as above
//
// Where this library was opened late (preload/routes/got_patch.h) the loader does not find its exports, and
// RTLD_DEFAULT is answered like a library.
//
// `dlerror` is as the real function left it.

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

constinit std::atomic<bool> driver_was_looked_up{false};

bool MayBeHooked(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

// Where this library was opened late the loader finds none of its exports. Whoever asks for the next
// function stands in front of others, as another profiler's library does: it gets that one, and is
// called by those whose calls are caught. What every library sees is the same from here; what only
// those see that were loaded with the caller is not.
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
    look_up(RTLD_NEXT);  // fails, and leaves its error
    return {};
  }
  void* function = look_up(handle);
  if (function == nullptr) return {};
  if (!InOwnImage(function)) return {nullptr, HookFor(name, function)};
  // The handle of the program and what it started with, this library among it.
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
