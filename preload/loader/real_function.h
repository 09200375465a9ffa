// preload/loader/real_function.h
//
// Finding the function behind a hook.
//
// A process may hold several runtimes (libcudart 12 and 13), and a runtime may be out of the global
// scope's sight (loaded RTLD_LOCAL by a plugin). So a real function is looked for under the version
// node its caller was linked with, then in the loaded library of that SONAME, and only then under
// its bare name. Another preloaded library comes first, if it stands between this one and the
// runtimes: it has the function under its bare name, without a runtime's node. An address in this
// library is never taken. Where this library was opened late, RTLD_NEXT finds nothing: the search
// then begins at the program, and most callers are bound to a real function already, which is known
// from there (preload/routes/got_patch.h).
//
// These calls take the loader's lock: once per hook, before its first call goes through.

#ifndef GMT_PRELOAD_LOADER_REAL_FUNCTION_H_
#define GMT_PRELOAD_LOADER_REAL_FUNCTION_H_

namespace gmt::preload {

// Version nodes of the runtimes, equal to their SONAMEs, by age.
inline constexpr const char* kRuntimeNodes[] = {"libcudart.so.11.0", "libcudart.so.12",
                                                "libcudart.so.13", "libcudart.so.14",
                                                "libcudart.so.15"};

// `node`: one of kRuntimeNodes. nullptr when there
// is none.
void* FindRuntimeFunction(const char* name, const char* node);

// Under the node, else in the loaded library whose SONAME the node is. nullptr when there is none.
void* FindVersionedFunction(const char* name, const char* node);

// In the driver library, if it is loaded.
void* FindDriverFunction(const char* name);

// The library that a function lies in stays loaded from now on: hooks keep the address, and a module
// that brought a runtime with it may be unloaded.
void KeepLoaded(void* function);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_REAL_FUNCTION_H_
