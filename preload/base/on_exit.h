// preload/base/on_exit.h
//
// on_exit() of glibc as a weak reference: programs with another libc (musl) must still be able to
// load this library. Callers check that &on_exit is not null.

#ifndef GMT_PRELOAD_BASE_ON_EXIT_H_
#define GMT_PRELOAD_BASE_ON_EXIT_H_

#include <stdlib.h>

#pragma weak on_exit

#endif  // GMT_PRELOAD_BASE_ON_EXIT_H_
