// preload/loader/real_function.h
//
// Finds the function behind a hook.
//
// A process may hold several runtimes (libcudart 12 and 13), and a runtime may be invisible in the
// global scope (loaded RTLD_LOCAL by a plugin). A real function is therefore looked up first under
// the version node its caller was linked with, then in the loaded library of that SONAME, and only
// then by its bare name. If another preloaded library lies between this one and the runtimes, it
// comes first: it has the function under its bare name, without a runtime's node. An address in
// this library is never accepted. If this library was opened late, RTLD_NEXT finds nothing. The
// search then begins at the program, and most callers are already bound to a real function, which
// is known from their slots (preload/routes/got_patch.h).
//
// These functions take the loader's lock, once per hook, before its first call goes through.

#ifndef GMT_PRELOAD_LOADER_REAL_FUNCTION_H_
#define GMT_PRELOAD_LOADER_REAL_FUNCTION_H_

namespace gmt::preload {

// Version nodes of the runtimes, equal to their SONAMEs, oldest first.
inline constexpr const char* kRuntimeNodes[] = {"libcudart.so.11.0", "libcudart.so.12",
                                                "libcudart.so.13", "libcudart.so.14",
                                                "libcudart.so.15"};

// Returns nullptr if there is none. `node`: one of kRuntimeNodes.
void* FindRuntimeFunction(const char* name, const char* node);

// Looks under the node, then in the loaded library whose SONAME the node is. Returns nullptr if
// there is none.
void* FindVersionedFunction(const char* name, const char* node);

// Looks in the driver library, if it is loaded.
void* FindDriverFunction(const char* name);

// Keeps the library that contains the function loaded from now on. Hooks keep its address, and a
// module that brought a runtime with it may be unloaded.
void KeepLoaded(void* function);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_REAL_FUNCTION_H_
