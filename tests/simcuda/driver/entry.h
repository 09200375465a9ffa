// How the simulated runtime and math libraries reach the driver: exactly and only as the real ones
// do, so that a profiler intercepts the calls in the same places as on a GPU.
//
//   dlopen("libcuda.so.1") -> dlsym("cuGetProcAddress_v2") -> cuGetProcAddress("cuGetProcAddress")
//                          -> that one for every other function, at its first use
//
// SIM_DRIVER(cuMemAlloc, 3020)(&address, size) calls the form of cuMemAlloc introduced by CUDA 3.2;
// SIM_DRIVER_PER_THREAD calls its form for a per-thread default stream. If the driver lacks the
// function, the call returns CUDA_ERROR_NOT_SUPPORTED; if there is no driver, kDriverMissing.
#ifndef TESTS_SIMCUDA_DRIVER_ENTRY_H_
#define TESTS_SIMCUDA_DRIVER_ENTRY_H_

#include <cuda.h>

namespace sim {

// Returns the address of a driver function, or null if there is none. `status` may be null.
void* DriverAddress(const char* name, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status);

bool DriverIsLoaded();

// cudaErrorInsufficientDriver, which the driver's enumeration lacks.
inline constexpr CUresult kDriverMissing = static_cast<CUresult>(35);

// A driver function, looked up once.
template <typename Function>
class DriverFunction;

template <typename... Arguments>
class DriverFunction<CUresult(Arguments...)> {
 public:
  DriverFunction(const char* name, int version, cuuint64_t flags)
      : function_(reinterpret_cast<CUresult (*)(Arguments...)>(
            DriverAddress(name, version, flags, nullptr))) {}

  CUresult operator()(Arguments... arguments) const {
    if (function_ != nullptr) return function_(arguments...);
    return DriverIsLoaded() ? CUDA_ERROR_NOT_SUPPORTED : kDriverMissing;
  }

 private:
  CUresult (*function_)(Arguments...);
};

}  // namespace sim

// The name is stringized before cuda.h's macros turn it into the symbol whose type is taken.
#define SIM_DRIVER_FORM(name, type, version, flags)                        \
  ([]() -> const sim::DriverFunction<type>& {                              \
    static const sim::DriverFunction<type> function(name, version, flags); \
    return function;                                                       \
  }())
#define SIM_DRIVER(name, version) \
  SIM_DRIVER_FORM(#name, decltype(name), version, CU_GET_PROC_ADDRESS_LEGACY_STREAM)
#define SIM_DRIVER_PER_THREAD(name, version) \
  SIM_DRIVER_FORM(#name, decltype(name), version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

#endif  // TESTS_SIMCUDA_DRIVER_ENTRY_H_
