#include "tests/simcuda/math/math_launch.h"

#include "tests/simcuda/driver/entry.h"

namespace sim {
namespace {

CUkernel LoadKernel() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (SIM_DRIVER(cuLibraryLoadData, 12000)(&library, "", nullptr, nullptr, 0, nullptr, nullptr,
                                           0) == CUDA_SUCCESS) {
    SIM_DRIVER(cuLibraryGetKernel, 12000)(&kernel, library, "simulated_math");
  }
  return kernel;
}

}  // namespace

CUresult LaunchMathKernel(CUstream stream) {
  static const CUkernel kernel = LoadKernel();
  return SIM_DRIVER(cuLaunchKernel, 4000)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0,
                                          stream, nullptr, nullptr);
}

}  // namespace sim
