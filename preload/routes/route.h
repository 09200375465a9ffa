// preload/routes/route.h
//
// How this library got between the process and its GPU calls, and whether this copy of the library
// is the one that intercepts them.
//
//   LD_PRELOAD              from the start; nothing needs to be done
//   CUDA_INJECTION64_PATH   the driver opens the library while it initializes (InitializeInjection)
//   gpumemtrace_start       the program opens it (gpumemtrace.start() in Python)
//   gpumemtrace_attach      injected from outside while the program runs (gpumemtrace attach)
//
// If a process has several copies, of one file or of several, one intercepts: the first that is
// preloaded, otherwise the first that begins. The others step back: their hooks pass everything
// through. Copies find each other by the exported gpumemtrace_catching.
//
// Thread safety: all functions may be called from any thread. They take the loader's lock;
// RouteTaken() only the first time.

#ifndef GMT_PRELOAD_ROUTES_ROUTE_H_
#define GMT_PRELOAD_ROUTES_ROUTE_H_

#include <stddef.h>
#include <stdint.h>

namespace gmt::preload {

enum class Route : uint32_t { kNone, kPreload, kInjection, kStart, kAttach };

// kNone: this copy was opened late and has not begun, or has stepped back.
Route RouteTaken();

// Returns whether another copy intercepts calls. `path` receives the path of its file, truncated to
// the capacity.
bool AnotherCopyCatches(char* path, size_t capacity);

// Starts intercepting calls of loaded and future modules. Returns false if another copy already
// does, or if the process is privileged (AT_SECURE). REQUIRES: not preloaded.
bool BeginLate(Route route);

// Describes how this copy was loaded, in the wording of a recording's sources. Returns false if it
// was preloaded, in which case there is nothing to describe.
bool DescribeLateRoute(char* text, size_t capacity);

// Returns the names of modules that had addresses of the driver's functions when this copy began to
// intercept, so that their calls through these are not seen (preload/routes/kept_pointers.h); "" if
// there are none.
const char* KeptByOthers();

// Returns whether the driver was already initialized when this copy began: earlier allocations are
// then unknown.
bool BeganAfterTheDriver();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_ROUTE_H_
