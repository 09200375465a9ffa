// preload/loader.h
//
// The loader's functions under the names they have had since the first glibc of each machine, so
// that the library still loads where glibc is older than 2.34. (There they live in libdl.so.2,
// which is why that library is linked.)

#ifndef GMT_PRELOAD_LOADER_H_
#define GMT_PRELOAD_LOADER_H_

#include <dlfcn.h>

#if defined(__x86_64__)
#define GMT_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GMT_FIRST_GLIBC "GLIBC_2.17"
#endif

asm(".symver dladdr, dladdr@" GMT_FIRST_GLIBC);
asm(".symver dlclose, dlclose@" GMT_FIRST_GLIBC);
asm(".symver dlopen, dlopen@" GMT_FIRST_GLIBC);
asm(".symver dlsym, dlsym@" GMT_FIRST_GLIBC);
asm(".symver dlvsym, dlvsym@" GMT_FIRST_GLIBC);

#endif  // GMT_PRELOAD_LOADER_H_
