// Runs kernels that write memory of each kind and checks what they wrote: recording must not change
// what a program computes. Needs nvcc.
//
// Usage: kernel_calls [--no-values]
//   --no-values  does not check the values, for simulated devices, where kernels do nothing
// Built with the shared and with the static runtime.
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "tests/programs/truth_log.h"

namespace {

constexpr int kCount = 1 << 20;

__global__ void Fill(int* memory, int count, int first) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) memory[index] = first + 3 * index;
}

TruthLog truth;
bool values = true;

void FillAndLook(int* memory, int first, const char* what) {
  Fill<<<(kCount + 255) / 256, 256>>>(memory, kCount, first);
  truth.Check(cudaGetLastError() == cudaSuccess, "the kernel is launched");
  std::vector<int> seen(kCount);
  truth.Check(
      cudaMemcpy(seen.data(), memory, sizeof(int) * kCount, cudaMemcpyDefault) == cudaSuccess,
      "its result can be copied");
  bool same = true;
  for (int n = 0; n < kCount; ++n) same &= seen[n] == first + 3 * n;
  truth.Check(same || !values, what);
}

}  // namespace

int main(int argc, char** argv) {
  values = argc < 2 || std::strcmp(argv[1], "--no-values") != 0;
  constexpr size_t kBytes = sizeof(int) * kCount;
  void *device = nullptr, *managed = nullptr, *pinned = nullptr, *ordered = nullptr;
  LOG_CALL(truth, cudaMalloc(&device, kBytes));
  FillAndLook(static_cast<int*>(device), 1, "device memory holds what a kernel wrote");
  LOG_CALL(truth, cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal));
  FillAndLook(static_cast<int*>(managed), 2, "managed memory holds what a kernel wrote");
  LOG_CALL(truth, cudaHostAlloc(&pinned, kBytes, cudaHostAllocMapped));
  FillAndLook(static_cast<int*>(pinned), 3, "pinned memory holds what a kernel wrote");
  LOG_CALL(truth, cudaMallocAsync(&ordered, kBytes, nullptr));
  FillAndLook(static_cast<int*>(ordered), 4, "stream-ordered memory holds what a kernel wrote");
  LOG_CALL(truth, cudaFreeAsync(ordered, nullptr));
  LOG_CALL(truth, cudaFreeHost(pinned));
  LOG_CALL(truth, cudaFree(managed));
  LOG_CALL(truth, cudaFree(device));
  return truth.Finish();
}
