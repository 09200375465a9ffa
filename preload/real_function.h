// preload/real_function.h
//
// Finding the function behind a hook.
//
// A process may hold several runtimes (libcudart 12 and 13), and a runtime may be out of the global
// scope's sight (loaded RTLD_LOCAL by a plugin). So a real function is looked for under the version
// node its caller was linked with, then in the loaded library of that SONAME, and only then under
// its bare name. An address in this library is never taken.
//
// These calls take the loader's lock: once per hook, before its first call goes through.

#ifndef GMT_PRELOAD_REAL_FUNCTION_H_
#define GMT_PRELOAD_REAL_FUNCTION_H_

namespace gmt::preload {

// `node`: version node of the runtime, equal to its SONAME ("libcudart.so.13"). nullptr when there
// is none.
void* FindRuntimeFunction(const char* name, const char* node);

// In the driver library, if it is loaded.
void* FindDriverFunction(const char* name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_REAL_FUNCTION_H_
