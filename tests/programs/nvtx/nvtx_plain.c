/* Uses NVTX from C. The level is 0 if a tool is present, and negative without one. */

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

int main(void) {
  void* memory = 0;
  if (cudaMalloc(&memory, 1 << 20) != cudaSuccess) return 1;
  nvtxRangePushA("from C");
  nvtxMarkA("mark from C");
  return nvtxRangePop() > 0;
}
