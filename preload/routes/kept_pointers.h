// preload/routes/kept_pointers.h
//
// Which modules keep addresses of the driver's functions. A static runtime, and everything that
// contains one (cuBLAS, cuDNN, NCCL), asks the driver for its functions once and calls them by
// pointer ever after. Where this library comes later than that, such calls cannot be caught; what can
// be told is whose they are.
//
// A module does so when a word of its writable data points into the driver's code. Its memory is read
// through the kernel, for the program may have made parts of it unreadable.

#ifndef GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_
#define GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_

#include <stddef.h>

namespace gmt::preload {

// Writes the file names of such modules to `text`, with commas between them ("the program" for the
// program itself), cut to the capacity. Returns how many there are; 0 as well where the driver is not
// loaded, or memory may not be read in this way. Modules whose calls are seen by other means, such as
// the shared runtimes, are not among them. Takes the lock of the loader's list.
int FindKeptPointers(char* text, size_t capacity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_ROUTES_KEPT_POINTERS_H_
