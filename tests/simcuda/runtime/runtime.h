// What every function of the simulated runtime does: ensures that the thread has a context, calls
// the driver, and remembers the error.
//
// A failure becomes the thread's last error, including cudaErrorNotReady; success does not clear
// it. cudaGetLastError returns and clears it, cudaPeekAtLastError only returns it.
//
// A thread without a current context gets the primary context of the device selected with
// cudaSetDevice, or of device 0.
#ifndef TESTS_SIMCUDA_RUNTIME_H_
#define TESTS_SIMCUDA_RUNTIME_H_

#include "tests/simcuda/driver/entry.h"
#include "tests/simcuda/runtime/call.h"
#include "tests/simcuda/runtime/cudart_api.h"

namespace sim {

// Converts a driver code to a runtime code: the enumerations agree on every number used here.
constexpr cudaError_t ToRuntime(CUresult result) { return static_cast<cudaError_t>(result); }

// Makes `error` the last error of this thread unless it is success. Returns it.
cudaError_t Remember(cudaError_t error);
inline cudaError_t Remember(CUresult result) { return Remember(ToRuntime(result)); }

// Calls cuInit, once per process.
CUresult InitializeDriver();

// Gives this thread a current context if it has none.
CUresult EnsureContext();

// Makes the primary context of `device` current on this thread.
CUresult SelectDevice(int device);

// Returns the device of this thread's current context, or of the one that it would get.
CUresult SelectedDevice(int* device);

// Forgets that the primary context of `device` was retained.
void ForgetPrimary(int device);

// Runs `body`, which returns a CUresult, with a current context. `name` is the runtime function,
// which is the caller.
template <typename Body>
cudaError_t InContext(Body body, const char* name = __builtin_FUNCTION()) {
  RuntimeCall call(name);
  CUresult result = EnsureContext();
  return call.Finish(Remember(result == CUDA_SUCCESS ? body() : result));
}

// Runs `body`, which returns a CUresult, with the driver initialised; for queries about devices.
template <typename Body>
cudaError_t WithDriver(Body body, const char* name = __builtin_FUNCTION()) {
  RuntimeCall call(name);
  CUresult result = InitializeDriver();
  return call.Finish(Remember(result == CUDA_SUCCESS ? body() : result));
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Calls `allocate(&address)` with a current context and stores the address; null on failure.
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

// Hints about managed memory, with the types of CUDA 13.
cudaError_t Prefetch(const void* pointer, size_t size, const cudaMemLocation& location,
                     unsigned int flags, cudaStream_t stream);
cudaError_t Advise(const void* pointer, size_t size, cudaMemoryAdvise advice,
                   const cudaMemLocation& location);

// Returns the kernel of a __global__ function's host stub, or null if it was never registered.
CUkernel KernelOf(const void* host_function);

// Returns the device address of a registered __device__ variable.
CUresult SymbolAddress(const void* symbol, CUdeviceptr* address);

}  // namespace sim

#endif  // TESTS_SIMCUDA_RUNTIME_H_
