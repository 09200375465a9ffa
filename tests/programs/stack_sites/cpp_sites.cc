// Allocates at many sites of an optimized C++ program with debug information.
//
// Usage: cpp_sites
#include "tests/programs/stack_sites/cpp_sites.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include <initializer_list>

namespace cpp {

NOINLINE void Take(size_t size) {
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, size);  // @cc_take
  if (error != cudaSuccess) fprintf(stderr, "cudaMalloc: %d\n", error);
}

NOINLINE void TakeOnce(size_t size, bool* taken) {
  if (!*taken) Take(size);  // @cc_take_once
  *taken = true;
}

}  // namespace cpp

int main() {
  for (const auto run : {cpp::RunCalls, cpp::RunMoments}) run();  // @cc_main
  return 0;
}
