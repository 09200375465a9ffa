// dlopen, where this library was opened late: what is loaded by it is patched at once.
//
// The loader tells by the return address who opens a library. It looks for it, and for those that it
// needs, where the caller says (DT_RPATH, DT_RUNPATH, $ORIGIN). So the real function is called from
// here only where that makes no difference: for a path, and where no module has DT_RPATH, which
// extends to all that is loaded on its behalf. Everything else is a jump, and what was loaded is
// patched at the next dlsym or dlopen; a program does not get at a library's functions without one,
// unless they announce themselves while the library is being loaded.

#include "preload/routes/dlopen.h"

#include <string.h>

#include "preload/loader/jumping.h"
#include "preload/loader/loader.h"
#include "preload/routes/got_patch.h"

namespace {

bool SameForAllCallers(const char* file) {
  return file != nullptr && strchr(file, '/') != nullptr && strchr(file, '$') == nullptr &&
         !gmt::preload::AnyModuleHasRpath();
}

}  // namespace

GMT_INTERNAL gmt::preload::Choice GmtChooseDlopen(const char* file, int mode) {
  void* const real = gmt::preload::NextLoaderFunction("dlopen");
  if (real == nullptr) return {};
  gmt::preload::PatchNewModules();
  if (!SameForAllCallers(file)) return {real, nullptr};
  void* library = reinterpret_cast<decltype(&::dlopen)>(real)(file, mode);
  // A failure's text is for the caller's dlerror.
  if (library != nullptr) gmt::preload::PatchNewModules();
  return {nullptr, library};
}

GMT_JUMPING(gmt_late_dlopen, GmtChooseDlopen);
asm(".hidden gmt_late_dlopen");
extern "C" __attribute__((visibility("hidden"))) void* gmt_late_dlopen(const char* file, int mode);

namespace gmt::preload {

void* LateDlopen() { return reinterpret_cast<void*>(&gmt_late_dlopen); }

}  // namespace gmt::preload
