// Prints the CUDA runtime's last error after calls that succeed and calls that fail.
//
// Exercises: recording does not change the runtime's last error. Prints one line per step, which
// must be the same with and without a profiler.
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
