// preload/record/driver_query.h
//
// What the library itself asks the driver, through the driver's own functions. None of them touches
// the runtime's last error. To be called only where the driver is in use already: after a call of
// it has succeeded on this thread, or from inside one.
//
// Warm: CurrentContext(), a read of thread-local memory in the driver. The others are for rare
// calls.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_RECORD_DRIVER_QUERY_H_
#define GMT_PRELOAD_RECORD_DRIVER_QUERY_H_

#include <stdint.h>

namespace gmt::preload {

// CUcontext of this thread; 0: none.
uint64_t CurrentContext();

// Of this thread's context; session::kNoDevice where there is none.
uint8_t CurrentDevice();

// Whether cuInit has been called. REQUIRES: not from inside of it.
bool DriverIsInitialized();

// CUcontext of a device's primary context; 0 where it is not active.
uint64_t PrimaryContext(int device);
bool PrimaryContextIsActive(int device);

// Of CUDA, as the driver knows it; the newest there can be where it does not say.
unsigned DriverVersion();

// The device that an address of CUDA's belongs to; session::kNoDevice for pinned host memory. False:
// the driver does not know the address.
bool DeviceOf(uint64_t address, uint8_t* device);

// Bytes of the allocation that begins at this device address; 0 where the driver does not say.
uint64_t AllocationSize(uint64_t address);

// Bytes free and in all on the device of this thread's context. False: the driver does not say.
bool MemoryOfDevice(uint64_t* free, uint64_t* total);

// What the driver calls a device. What it does not say is empty, or 0.
struct DeviceIdentity {
  char name[256];
  char uuid[48];  // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; of an instance (MIG) its own
  char pci_bus_id[32];
  uint64_t total_bytes;
  int compute_capability;  // 90 is 9.0
};
void IdentifyDevice(int device, DeviceIdentity* identity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_DRIVER_QUERY_H_
