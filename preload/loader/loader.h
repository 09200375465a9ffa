// preload/loader/loader.h
//
// The real functions of the loader.
//
// This library exports dlsym, dlvsym (preload/routes/dlsym.cc) and dlclose
// (preload/routes/dlclose.cc), so these names lead back here from everywhere, including from this
// library itself. The real ones are found in the loader's own list of libraries, by reading libc's
// symbol table. The others are imported under the versions they have had since each architecture's
// first glibc, so that the library still loads if glibc is older than 2.34. (Older versions have
// them in libdl.so.2, which is why that library is linked.)
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_LOADER_LOADER_H_
#define GMT_PRELOAD_LOADER_LOADER_H_

#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__)
#define GMT_FIRST_GLIBC "GLIBC_2.2.5"
#define GMT_GLIBC_OF_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define GMT_FIRST_GLIBC "GLIBC_2.17"
#define GMT_GLIBC_OF_DLADDR1 "GLIBC_2.17"
#endif

asm(".symver dladdr, dladdr@" GMT_FIRST_GLIBC);
asm(".symver dladdr1, dladdr1@" GMT_GLIBC_OF_DLADDR1);
asm(".symver dlerror, dlerror@" GMT_FIRST_GLIBC);
asm(".symver dlopen, dlopen@" GMT_FIRST_GLIBC);

// glibc only. Programs of another libc (musl) that start with this library preloaded must not fail
// because it is missing.
#pragma weak dladdr1

namespace gmt::preload {

// libc's own functions, called from here: RTLD_NEXT means "after this library". Return nullptr if
// there is none.
void* LibcDlsym(void* handle, const char* name);
void* LibcDlvsym(void* handle, const char* name, const char* version);

// Returns the handle of this library for dlsym; nullptr, which is RTLD_DEFAULT, if unavailable.
void* OwnHandle();

// Closes a handle of a library that stays loaded anyway.
void LibcDlclose(void* handle);

// Returns what a program would reach by that name ("dlsym", "dlvsym", "dlopen" or "dlclose") if
// this library were absent: libc's function, or that of another library that precedes it.
void* NextLoaderFunction(const char* name);

// Returns whether this library was loaded at program start by LD_PRELOAD, before everything that
// the program links. If it was opened later, RTLD_NEXT has no meaning here.
bool LoadedAtStart();

// Looks up the functions above at once, while no library can be unloaded. To be called if this
// library was opened late, because a library that precedes it in the loader's list may be unloaded
// at any time.
void FindLoaderFunctions();

// Returns whether the library that contains `function` defines a function of that name. In a
// program that is not position-independent, the loader instead returns entries of the program's
// procedure linkage table as function addresses; calling one leads to whatever the program is bound
// to.
bool DefinesFunction(void* function, const char* name);

// Returns whether any library in this process except this one defines a function of that name,
// whether globally visible or not. Takes the loader's lock.
bool DefinedByAnotherLibrary(const char* name);

// Finds the first library in load order that defines a function of that name, whether globally
// visible or not. `path` receives its path as the loader has it, empty for the program itself.
// Returns false if there is none or its path is too long. Takes the loader's lock; preserves
// dlerror().
bool FindDefiner(const char* function, char* path, size_t capacity);

// Returns whether a library is loaded whose file name begins with `beginning`. Unlike dlopen with
// RTLD_NOLOAD, which first looks for the file on disk, it only reads the loader's list. Takes the
// loader's lock.
bool AnyLibraryIsNamed(const char* beginning);

// Returns whether any module in this process is linked with the library of that SONAME. Takes the
// loader's lock.
bool AnyModuleIsLinkedTo(const char* library);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_LOADER_H_
