// What every function of the simulated runtime does: make sure that the thread has a context, call
// the driver, remember the error.
//
// A failure becomes the thread's last error, cudaErrorNotReady included; success does not clear it.
// cudaGetLastError returns and clears it, cudaPeekAtLastError only returns it.
//
// A thread without a current context gets the primary context of the device it chose with
// cudaSetDevice, or of device 0.
#ifndef TESTS_SIMCUDA_RUNTIME_H_
#define TESTS_SIMCUDA_RUNTIME_H_

#include "tests/simcuda/driver/entry.h"
#include "tests/simcuda/runtime/call.h"
#include "tests/simcuda/runtime/cudart_api.h"

namespace sim {

// The runtime's code for a driver's code: the two enumerations agree on every number used here.
constexpr cudaError_t ToRuntime(CUresult result) { return static_cast<cudaError_t>(result); }

// Makes `error` the last error of this thread when it is one. Returns it.
cudaError_t Remember(cudaError_t error);
inline cudaError_t Remember(CUresult result) { return Remember(ToRuntime(result)); }

// cuInit, once per process.
CUresult InitializeDriver();

// Gives this thread a current context when it has none.
CUresult EnsureContext();

// Makes the primary context of `device` current on this thread.
CUresult SelectDevice(int device);

// The device of this thread's current context, or the one that it would get.
CUresult SelectedDevice(int* device);

// Forgets that the primary context of `device` was retained.
void ForgetPrimary(int device);

// Runs `body`, which returns a CUresult, with a current context. `name` is the function of the
// runtime that was called, which is the caller.
template <typename Body>
cudaError_t InContext(Body body, const char* name = __builtin_FUNCTION()) {
  RuntimeCall call(name);
  CUresult result = EnsureContext();
  return call.Finish(Remember(result == CUDA_SUCCESS ? body() : result));
}

// Runs `body`, which returns a CUresult, with the driver initialised; for questions about devices.
template <typename Body>
cudaError_t WithDriver(Body body, const char* name = __builtin_FUNCTION()) {
  RuntimeCall call(name);
  CUresult result = InitializeDriver();
  return call.Finish(Remember(result == CUDA_SUCCESS ? body() : result));
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Calls `allocate(&address)` with a current context and stores the address it set; null on failure.
template <typename Allocate>
cudaError_t StoreAddress(void** pointer, Allocate allocate,
                         const char* name = __builtin_FUNCTION()) {
  if (pointer == nullptr) return Remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  return InContext(
      [&] {
        CUdeviceptr address = 0;
        CUresult result = allocate(&address);
        if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
        return result;
      },
      name);
}

// Hints about managed memory, in the words of CUDA 13.
cudaError_t Prefetch(const void* pointer, size_t size, const cudaMemLocation& location,
                     unsigned int flags, cudaStream_t stream);
cudaError_t Advise(const void* pointer, size_t size, cudaMemoryAdvise advice,
                   const cudaMemLocation& location);

// The kernel that a __global__ function's host stub stands for; null when it was never registered.
CUkernel KernelOf(const void* host_function);

// The device address of a registered __device__ variable.
CUresult SymbolAddress(const void* symbol, CUdeviceptr* address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_RUNTIME_H_
