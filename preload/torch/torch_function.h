// preload/torch/torch_function.h
//
// The real functions of PyTorch behind the hooks, and those that the hooks ask. Python loads
// PyTorch's libraries for themselves alone (RTLD_LOCAL), so the loader's "next" function after this
// library's is none of theirs; they are looked for from the library that made the call.
//
// Thread safety: all functions from any thread. The first call for a function takes the loader's
// lock; what was found is kept for ever.

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

// `caller`: an address in a library of PyTorch that was linked with the function. nullptr: nothing
// of that name is there but our own.
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
