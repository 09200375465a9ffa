// preload/routes/dlopen.h

#ifndef GMT_PRELOAD_ROUTES_DLOPEN_H_
#define GMT_PRELOAD_ROUTES_DLOPEN_H_

namespace gmt::preload {

// What calls of dlopen lead to where this library was opened late (preload/routes/got_patch.h): the real
// one, after which the modules that came with it are patched. Not exported: where this library is
// preloaded there is no need for it.
void* LateDlopen();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_DLOPEN_H_
