// Kernels that write memory of each kind, and a look at what they wrote: recording must change
// nothing of what a program computes. Needs nvcc.
//
// Usage: kernel_calls [--no-values]
//   --no-values  where kernels do nothing
// Built with the shared and with the static runtime.
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "tests/programs/told.h"

namespace {

constexpr int kCount = 1 << 20;

__global__ void Fill(int* memory, int count, int first) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) memory[index] = first + 3 * index;
}

Told told;
bool values = true;

void FillAndLook(int* memory, int first, const char* what) {
  Fill<<<(kCount + 255) / 256, 256>>>(memory, kCount, first);
  told.Check(cudaGetLastError() == cudaSuccess, "the kernel is launched");
  std::vector<int> seen(kCount);
  told.Check(
      cudaMemcpy(seen.data(), memory, sizeof(int) * kCount, cudaMemcpyDefault) == cudaSuccess,
      "what it wrote can be copied");
  bool same = true;
  for (int n = 0; n < kCount; ++n) same &= seen[n] == first + 3 * n;
  told.Check(same || !values, what);
}

}  // namespace

int main(int argc, char** argv) {
  values = argc < 2 || std::strcmp(argv[1], "--no-values") != 0;
  constexpr size_t kBytes = sizeof(int) * kCount;
  void *device = nullptr, *managed = nullptr, *pinned = nullptr, *ordered = nullptr;
  TELL(told, cudaMalloc(&device, kBytes));
  FillAndLook(static_cast<int*>(device), 1, "device memory holds what a kernel wrote");
  TELL(told, cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal));
  FillAndLook(static_cast<int*>(managed), 2, "managed memory holds what a kernel wrote");
  TELL(told, cudaHostAlloc(&pinned, kBytes, cudaHostAllocMapped));
  FillAndLook(static_cast<int*>(pinned), 3, "pinned memory holds what a kernel wrote");
  TELL(told, cudaMallocAsync(&ordered, kBytes, nullptr));
  FillAndLook(static_cast<int*>(ordered), 4, "stream-ordered memory holds what a kernel wrote");
  TELL(told, cudaFreeAsync(ordered, nullptr));
  TELL(told, cudaFreeHost(pinned));
  TELL(told, cudaFree(managed));
  TELL(told, cudaFree(device));
  return told.Finish();
}
