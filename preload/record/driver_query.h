// preload/record/driver_query.h
//
// Queries that the library itself makes, through the driver's own functions. None of them affects
// the runtime's last error. REQUIRES: the driver is already in use: a driver call has succeeded on
// this thread or is in progress.
//
// Fast: CurrentContext(), which reads thread-local memory in the driver. The others are for rare
// calls.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_RECORD_DRIVER_QUERY_H_
#define GMT_PRELOAD_RECORD_DRIVER_QUERY_H_

#include <stdint.h>

namespace gmt::preload {

// Returns the CUcontext of this thread; 0: none.
uint64_t CurrentContext();

// Returns the device of this thread's context; session::kNoDevice if there is none.
uint8_t CurrentDevice();

// Returns whether cuInit has been called. REQUIRES: not called from inside cuInit.
bool DriverIsInitialized();

// Returns the CUcontext of a device's primary context; 0 if it is not active.
uint64_t PrimaryContext(int device);
bool PrimaryContextIsActive(int device);

// Returns the CUDA version that the driver supports; the highest possible value if the driver does
// not report it.
unsigned DriverVersion();

// Finds the device of a CUDA address; session::kNoDevice for pinned host memory. Returns false if
// the driver does not know the address.
bool DeviceOf(uint64_t address, uint8_t* device);

// Returns the bytes of the allocation that begins at this device address; 0 if the driver does not
// report them.
uint64_t AllocationSize(uint64_t address);

// Returns free and total bytes of the device of this thread's context. False: not reported by the
// driver.
bool MemoryOfDevice(uint64_t* free, uint64_t* total);

// The driver's description of a device. Unknown fields are empty or 0.
struct DeviceIdentity {
  char name[256];
  char uuid[48];  // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; a MIG instance has its own
  char pci_bus_id[32];
  uint64_t total_bytes;
  int compute_capability;  // 90 is 9.0
};
void IdentifyDevice(int device, DeviceIdentity* identity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_DRIVER_QUERY_H_
