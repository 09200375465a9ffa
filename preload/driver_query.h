// preload/driver_query.h
//
// What the library itself asks the driver, through the driver's own functions. None of them touches
// the runtime's last error. To be called only where the driver is in use already: after a call of
// it has succeeded on this thread, or from inside one.
//
// Warm: CurrentContext(), a read of thread-local memory in the driver. The others are for rare
// calls.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_DRIVER_QUERY_H_
#define GMT_PRELOAD_DRIVER_QUERY_H_

#include <stdint.h>

namespace gmt::preload {

// CUcontext of this thread; 0: none.
uint64_t CurrentContext();

// Of this thread's context; session::kNoDevice where there is none.
uint8_t CurrentDevice();

// CUcontext of a device's primary context; 0 where it is not active.
uint64_t PrimaryContext(int device);
bool PrimaryContextIsActive(int device);

// Of CUDA, as the driver knows it; the newest there can be where it does not say.
unsigned DriverVersion();

// Bytes of the allocation that begins at this device address; 0 where the driver does not say.
uint64_t AllocationSize(uint64_t address);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_DRIVER_QUERY_H_
