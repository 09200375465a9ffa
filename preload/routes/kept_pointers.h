// preload/routes/kept_pointers.h
//
// Finds modules that cache addresses of the driver's functions. A static runtime, and every library
// that contains one (cuBLAS, cuDNN, NCCL), asks the driver for its functions once and then calls
// them by pointer. If this library is loaded after that, such calls cannot be intercepted, but the
// calling modules can be identified.
//
// A module caches such addresses if a word of its writable data points into the driver's code. Its
// memory is read through the kernel, because the program may have made parts of it unreadable.

#ifndef GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_
#define GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_

#include <stddef.h>

namespace gmt::preload {

// Writes the file names of such modules to `text`, separated by commas ("the program" for the
// program itself) and truncated to the capacity. Returns their number; also 0 if the driver is not
// loaded, or memory cannot be read this way. Modules whose calls are seen by other means, such as
// the shared runtimes, are left out. Takes the lock of the loader's list.
int FindKeptPointers(char* text, size_t capacity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_
