// dlopen, if this library was opened late: patches newly loaded modules at once.
//
// The loader identifies the caller by the return address. It searches for the library, and for
// those that it needs, along the caller's paths (DT_RPATH, DT_RUNPATH, $ORIGIN). The real function
// is therefore called from here only if that makes no difference: for a path, and if no module has
// DT_RPATH, which also applies to everything loaded on its behalf. Otherwise this is a jump, and
// the new modules are patched at the next dlsym or dlopen. A program cannot reach a library's
// functions without one of these, unless the functions register themselves while the library is
// being loaded.

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
  // The error text of a failure is left for the caller's dlerror.
  if (library != nullptr) gmt::preload::PatchNewModules();
  return {nullptr, library};
}

GMT_JUMPING(gmt_late_dlopen, GmtChooseDlopen);
asm(".hidden gmt_late_dlopen");
extern "C" __attribute__((visibility("hidden"))) void* gmt_late_dlopen(const char* file, int mode);

namespace gmt::preload {

void* LateDlopen() { return reinterpret_cast<void*>(&gmt_late_dlopen); }

}  // namespace gmt::preload
