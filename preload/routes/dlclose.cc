// dlclose: discards what is known about a library when it is unloaded.
//
// Rules about its frames (preload/stacks/unwind/rule_cache.h) must not be applied to a library that
// is later loaded in its place. Addresses in stacks that are recorded later do not refer to its
// functions. The rules are invalidated before the library is unloaded; the module log is updated
// afterwards.
//
// Nothing else changes: result, errno and dlerror are those of the real function, which, unlike
// dlopen, does not depend on its caller.

#include "preload/base/export.h"
#include "preload/loader/loader.h"
#include "preload/process/write_guard.h"
#include "preload/record/note_modules.h"
#include "preload/record/record_event.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "preload/stacks/unwind/rule_cache.h"

namespace gmt::preload {
namespace {

using Dlclose = int (*)(void* handle);

int CloseAndForget(Dlclose real, void* handle) {
  RulesInDoubt rules;
  RecheckKnownModules();
  const uint64_t before = UnloadedModules();
  const int result = real(handle);
  const KeepErrno keep;
  if (UnloadedModules() == before) {  // other handles keep it open
    rules.NothingWasUnloaded();
    return result;
  }
  if (const WriteGuard p(Process::IfRecording()); p != nullptr) {
    ListModules();
    NoteGoneModules(*p);
  }
  return result;
}

}  // namespace
}  // namespace gmt::preload

GMT_EXPORT int dlclose(void* handle) {
  using gmt::preload::Dlclose;
  const auto real = reinterpret_cast<Dlclose>(gmt::preload::NextLoaderFunction("dlclose"));
  return real == nullptr ? -1 : gmt::preload::CloseAndForget(real, handle);
}
