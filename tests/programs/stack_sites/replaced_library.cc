// The libraries of replaced.cc: REPLACED_NAME is their only difference, so that their functions lie
// at the same offsets, and FRAME_SIZE, so that a rule of the one leads the walk astray in the other.
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
