#include "preload/current_device.h"

#include <cuda.h>

#include <atomic>

#include "preload/real_function.h"
#include "session/layout.h"

namespace gmt::preload {
namespace {

constinit std::atomic<decltype(&cuCtxGetDevice)> get_device{nullptr};

}  // namespace

uint8_t CurrentDevice() {
  auto get = get_device.load(std::memory_order_acquire);
  if (get == nullptr) {
    get = reinterpret_cast<decltype(&cuCtxGetDevice)>(FindDriverFunction("cuCtxGetDevice"));
    get_device.store(get, std::memory_order_release);
  }
  CUdevice device;
  if (get == nullptr || get(&device) != CUDA_SUCCESS) return session::kNoDevice;
  return static_cast<uint8_t>(device);
}

}  // namespace gmt::preload
