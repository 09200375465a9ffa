// What the CUDA runtime says of its last error, after calls that work and calls that do not.
//
// Exercises: that recording leaves the runtime's last error alone. Prints one line per step; under
// a profiler the lines must be the same as without.
#include <cuda_runtime_api.h>

#include <cstdio>

namespace {

void Say(const char* step, cudaError_t result) {
  std::printf("%s: %s, last %s\n", step, cudaGetErrorName(result),
              cudaGetErrorName(cudaPeekAtLastError()));
}

}  // namespace

int main() {
  void *ptr = nullptr, *none = nullptr;
  Say("allocate", cudaMalloc(&ptr, 1000003));
  Say("allocate too much", cudaMalloc(&none, size_t{1} << 50));
  void* second = nullptr;
  Say("allocate after a failure", cudaMalloc(&second, 4096));
  Say("take the error", cudaGetLastError());
  Say("free", cudaFree(ptr));
  Say("free what is no memory", cudaFree(reinterpret_cast<void*>(0x1000)));
  Say("free after a failure", cudaFree(second));
  Say("take the error", cudaGetLastError());
  Say("free nothing", cudaFree(nullptr));
}
