// A stand-in for cuBLASLt: descriptors are opaque and empty, the heuristic returns one algorithm
// without workspace, and a multiplication is one empty kernel.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/simcuda/math/math_launch.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kFailed = 13;          // CUBLAS_STATUS_EXECUTION_FAILED
constexpr size_t kDescriptor = 256;  // bytes; more than any of the real, opaque descriptors

// cublasLtMatmulHeuristicResult_t: the layout is part of the library's ABI.
struct HeuristicResult {
  uint64_t algorithm[8];
  size_t workspace_size;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

int Create(void** descriptor) {
  *descriptor = std::calloc(1, kDescriptor);
  return *descriptor != nullptr ? kSuccess : kFailed;
}

int Destroy(void* descriptor) {
  std::free(descriptor);
  return kSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

size_t cublasLtGetVersion() { return SIMCUDA_LIBRARY_MAJOR * 10000; }
size_t cublasLtGetCudartVersion() { return SIMCUDA_LIBRARY_MAJOR * 1000; }

int cublasLtCreate(void** handle) { return Create(handle); }
int cublasLtDestroy(void* handle) { return Destroy(handle); }

int cublasLtMatmulDescCreate(void** descriptor, int, int) { return Create(descriptor); }
int cublasLtMatmulDescDestroy(void* descriptor) { return Destroy(descriptor); }
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t) { return kSuccess; }

int cublasLtMatrixLayoutCreate(void** layout, int, uint64_t, uint64_t, int64_t) {
  return Create(layout);
}
int cublasLtMatrixLayoutDestroy(void* layout) { return Destroy(layout); }
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t) { return kSuccess; }

int cublasLtMatmulPreferenceCreate(void** preference) { return Create(preference); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return Destroy(preference); }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return kSuccess; }

int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int asked,
                                   HeuristicResult* results, int* returned) {
  *returned = asked > 0 ? 1 : 0;
  if (asked > 0) results[0] = {.algorithm = {1}, .waves = 1.0f};
  return kSuccess;
}

int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void*, size_t, CUstream stream) {
  return sim::LaunchMathKernel(stream) == CUDA_SUCCESS ? kSuccess : kFailed;
}

int SimMathSuccess() { return kSuccess; }

}  // extern "C"
#pragma GCC visibility pop
