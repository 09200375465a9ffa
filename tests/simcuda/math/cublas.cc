// A stand-in for cuBLAS: handles and their settings are kept, and every operation is one empty
// kernel on the handle's stream. A handle takes SIMCUDA_HANDLE bytes of device memory.
//
// All cuBLAS operations take the handle as their first argument, so a single function serves those
// that are not implemented separately (CMakeLists.txt, "stubs").
#include <cstddef>

#include "tests/simcuda/math/library_memory.h"
#include "tests/simcuda/math/math_launch.h"

namespace {

constexpr int kVersion = SIMCUDA_LIBRARY_MAJOR * 10000;
constexpr int kSuccess = 0;         // CUBLAS_STATUS_SUCCESS
constexpr int kNotInitialized = 1;  // CUBLAS_STATUS_NOT_INITIALIZED
constexpr int kNoMemory = 3;        // CUBLAS_STATUS_ALLOC_FAILED
constexpr int kFailed = 13;         // CUBLAS_STATUS_EXECUTION_FAILED

}  // namespace

struct cublasContext {
  CUstream stream = nullptr;
  int math_mode = 0;
  int pointer_mode = 0;
  int atomics_mode = 0;
  sim::HandleMemory memory;
};

#pragma GCC visibility push(default)
extern "C" {

int cublasCreate_v2(cublasContext** handle) {
  auto* made = new cublasContext;
  if (!made->memory.Allocate()) {
    delete made;
    return kNoMemory;
  }
  *handle = made;
  return kSuccess;
}

int cublasDestroy_v2(cublasContext* handle) {
  delete handle;
  return kSuccess;
}

int cublasGetVersion_v2(cublasContext*, int* version) {
  *version = kVersion;
  return kSuccess;
}

int cublasGetProperty(int type, int* value) {
  *value = type == 0 ? kVersion / 10000 : 0;  // 0: major
  return kSuccess;
}

size_t cublasGetCudartVersion() { return SIMCUDA_LIBRARY_MAJOR * 1000; }

int cublasSetStream_v2(cublasContext* handle, CUstream stream) {
  handle->stream = stream;
  return kSuccess;
}

int cublasGetStream_v2(cublasContext* handle, CUstream* stream) {
  *stream = handle->stream;
  return kSuccess;
}

int cublasSetWorkspace_v2(cublasContext*, void*, size_t) { return kSuccess; }

int cublasSetMathMode(cublasContext* handle, int mode) {
  handle->math_mode = mode;
  return kSuccess;
}

int cublasGetMathMode(cublasContext* handle, int* mode) {
  *mode = handle->math_mode;
  return kSuccess;
}

int cublasSetPointerMode_v2(cublasContext* handle, int mode) {
  handle->pointer_mode = mode;
  return kSuccess;
}

int cublasGetPointerMode_v2(cublasContext* handle, int* mode) {
  *mode = handle->pointer_mode;
  return kSuccess;
}

int cublasSetAtomicsMode(cublasContext* handle, int mode) {
  handle->atomics_mode = mode;
  return kSuccess;
}

int cublasGetAtomicsMode(cublasContext* handle, int* mode) {
  *mode = handle->atomics_mode;
  return kSuccess;
}

const char* cublasGetStatusName(int status) {
  return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

const char* cublasGetStatusString(int status) {
  return status == kSuccess ? "success" : "the simulated operation failed";
}

int SimMathSuccess() { return kSuccess; }

int SimMathLaunch(cublasContext* handle) {
  if (handle == nullptr) return kNotInitialized;
  return sim::LaunchMathKernel(handle->stream) == CUDA_SUCCESS ? kSuccess : kFailed;
}

}  // extern "C"
#pragma GCC visibility pop
