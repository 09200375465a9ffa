// preload/torch/torch_function.h
//
// The real PyTorch functions behind the hooks, and other PyTorch functions that the hooks call.
// Python loads PyTorch's libraries with RTLD_LOCAL, so the loader's "next" function after this
// library's is none of theirs. They are looked up from the library that made the call.
//
// Thread safety: all functions may be called from any thread. The first call for a function takes
// the loader's lock; the result is kept permanently.

#ifndef GMT_PRELOAD_TORCH_TORCH_FUNCTION_H_
#define GMT_PRELOAD_TORCH_TORCH_FUNCTION_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

enum class TorchFunction {
#define GMT_TORCH(name, mangled, result, parameters, arguments) k##name,
#include "preload/torch/hook_table.inc"
  kCurrentStream,    // c10::cuda::CUDAStream c10::cuda::getCurrentCUDAStream(DeviceIndex)
  kStreamHandle,     // cudaStream_t c10::cuda::CUDAStream::stream() const
  kCurrentThreadId,  // uint64_t at::RecordFunction::currentThreadId()
  kCount,
};

namespace internal_torch_function {
extern constinit std::atomic<void*> found[static_cast<int>(TorchFunction::kCount)];
void* Search(TorchFunction function, const void* caller);
}  // namespace internal_torch_function

// `caller`: an address in a PyTorch library that was linked with the function. Returns nullptr if
// only our own function has that name.
template <typename Function>
Function RealTorchFunction(TorchFunction function, const void* caller) {
  void* real =
      internal_torch_function::found[static_cast<int>(function)].load(std::memory_order_acquire);
  if (real == nullptr) [[unlikely]]
    real = internal_torch_function::Search(function, caller);
  return reinterpret_cast<Function>(real);
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_TORCH_FUNCTION_H_
