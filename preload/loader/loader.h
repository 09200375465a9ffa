// preload/loader/loader.h
//
// The loader's functions, the real ones.
//
// This library exports dlsym, dlvsym (preload/routes/dlsym.cc) and dlclose (preload/routes/dlclose.cc), so that
// their names lead back here from everywhere, itself included. The real ones are found in the loader's own list of libraries, by
// reading libc's symbol table. The others are imported under the names they have had since the
// first glibc of each machine, so that the library still loads where glibc is older than 2.34.
// (There they live in libdl.so.2, which is why that library is linked.)
//
// Thread safety: all functions from any thread.

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

// glibc's alone. Programs of another libc (musl) that start with this library preloaded must not end
// for the lack of it.
#pragma weak dladdr1

namespace gmt::preload {

// libc's own, to be called from here: RTLD_NEXT means "behind this library". nullptr where there is
// none to be found.
void* LibcDlsym(void* handle, const char* name);
void* LibcDlvsym(void* handle, const char* name, const char* version);

// This library, as dlsym takes it; nullptr, which is RTLD_DEFAULT, where it cannot be had.
void* OwnHandle();

// Gives back a handle of something that stays loaded all the same.
void LibcDlclose(void* handle);

// What a program would reach by that name ("dlsym", "dlvsym", "dlopen" or "dlclose") if this library were
// not there: libc's, or that of another library which stands in front of it.
void* NextLoaderFunction(const char* name);

// Whether this library came with the program's start, in front of everything that it links: by
// LD_PRELOAD. Else it was opened later, and RTLD_NEXT has no meaning here.
bool LoadedAtStart();

// Finds the functions above at once, while no library can go. To be called where this library was
// opened late: what stands in front of it in the loader's list may be unloaded at any time.
void FindLoaderFunctions();

// Whether the library that `function` lies in defines a function of that name. A program that is no
// position-independent one has entries of its procedure linkage table instead, which the loader gives
// out as the function's address: calling that leads to whatever the program is bound to.
bool DefinesFunction(void* function, const char* name);

// Whether any library in this process but this one defines a function of that name, in sight of
// anybody or not. Takes the loader's lock.
bool DefinedByAnotherLibrary(const char* name);

// The first library in load order that defines a function of that name, in sight of anybody or not:
// its path as the loader has it, empty for the program itself. False: there is none, or its path is
// too long. Takes the loader's lock, and leaves dlerror() as it is.
bool FindDefiner(const char* function, char* path, size_t capacity);

// Whether a library is loaded whose file's name begins like that. Unlike dlopen with RTLD_NOLOAD,
// which looks for the file on disk first, it asks nobody but the loader. Takes its lock.
bool AnyLibraryIsNamed(const char* beginning);

// Whether anything in this process was linked to the library of that SONAME. Takes the loader's
// lock.
bool AnybodyIsLinkedTo(const char* library);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_LOADER_H_
