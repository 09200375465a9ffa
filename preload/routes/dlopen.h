// preload/routes/dlopen.h

#ifndef GMT_PRELOAD_ROUTES_DLOPEN_H_
#define GMT_PRELOAD_ROUTES_DLOPEN_H_

namespace gmt::preload {

// Returns the function to which calls of dlopen are redirected if this library was opened late
// (preload/routes/got_patch.h). It calls the real dlopen and then patches the newly loaded modules.
// Not exported, because a preloaded library does not need it.
void* LateDlopen();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_DLOPEN_H_
