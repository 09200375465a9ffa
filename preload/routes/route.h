// preload/routes/route.h
//
// How the calls of this process come to this library: which of the ways in was taken, and whether it
// is this copy that they come to.
//
//   LD_PRELOAD              from the start; nothing is to be done
//   CUDA_INJECTION64_PATH   the driver opens the library while it is initialised (InitializeInjection)
//   gpumemtrace_start       the program opens it (gpumemtrace.start() in Python)
//   gpumemtrace_attach      somebody else brings it in while the program runs (gpumemtrace attach)
//
// Where several copies are in one process, of one file or of several, one catches: the first that is
// preloaded, else the first that begins. The others step back: their hooks pass everything through.
// Each is asked by its exported gpumemtrace_catching.
//
// Thread safety: all functions from any thread. They take the loader's lock, RouteTaken the first time
// only.

#ifndef GMT_PRELOAD_ROUTES_ROUTE_H_
#define GMT_PRELOAD_ROUTES_ROUTE_H_

#include <stddef.h>
#include <stdint.h>

namespace gmt::preload {

enum class Route : uint32_t { kNone, kPreload, kInjection, kStart, kAttach };

// kNone: this copy was opened late and has not begun, or has stepped back.
Route RouteTaken();

// Whether another copy catches calls; `path` gets the path of its file, cut to the capacity.
bool AnotherCopyCatches(char* path, size_t capacity);

// Begins to catch: the slots of what is loaded, and of what will be. False where another copy does, or
// a run by another user with more rights than theirs. REQUIRES: not preloaded.
bool BeginLate(Route route);

// How this copy came in, in the words of a recording's sources. False where it was preloaded, of which
// there is nothing to say.
bool DescribeLateRoute(char* text, size_t capacity);

// Names of modules that had addresses of the driver's functions when this copy began to catch, so that
// what they call by these is not seen (preload/routes/kept_pointers.h); "" where there are none.
const char* KeptByOthers();

// Whether the driver had been initialised when this copy began: what was allocated before is not known.
bool BeganAfterTheDriver();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_ROUTE_H_
