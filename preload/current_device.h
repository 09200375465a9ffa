// preload/current_device.h

#ifndef GMT_PRELOAD_CURRENT_DEVICE_H_
#define GMT_PRELOAD_CURRENT_DEVICE_H_

#include <stdint.h>

namespace gmt::preload {

// The device of the calling thread's context by the driver's own cuCtxGetDevice, which leaves the
// runtime's last error alone; session::kNoDevice where there is no context. To be called only after
// the driver was used by this thread.
uint8_t CurrentDevice();

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CURRENT_DEVICE_H_
