// The libraries of replaced.cc. They differ only in REPLACED_NAME and FRAME_SIZE: their functions
// have the same offsets, but an unwind rule of one leads to a wrong frame in the other.
#include <cuda_runtime_api.h>
#include <stddef.h>

extern "C" __attribute__((noinline)) void REPLACED_NAME(size_t number) {
  volatile char space[FRAME_SIZE];
  space[0] = 0;
  space[FRAME_SIZE - 1] = 0;
  void* pointer = nullptr;
  cudaMalloc(&pointer, 4096 * number + space[0]);
}

extern "C" void Allocate(size_t number) {
  REPLACED_NAME(number);
  asm volatile("" ::: "memory");
}
