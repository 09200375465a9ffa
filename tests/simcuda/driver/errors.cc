// Names and descriptions of the driver's error codes.
#include <iterator>

#include "tests/simcuda/cuda_api.h"

namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* text;
};

#define SIM_ERROR(code, text) \
  { code, #code, text }
constexpr Error kErrors[] = {
    SIM_ERROR(CUDA_SUCCESS, "no error"),
    SIM_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    SIM_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    SIM_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    SIM_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    SIM_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    SIM_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    SIM_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    SIM_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    SIM_ERROR(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    SIM_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
    SIM_ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    SIM_ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
    SIM_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    SIM_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    SIM_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    SIM_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    SIM_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    SIM_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    SIM_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    SIM_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
    SIM_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              "operation not permitted when stream is capturing"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
              "capture was not ended in the same stream as it began"),
    SIM_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef SIM_ERROR

const Error* Lookup(CUresult code) {
  for (const Error& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

CUresult cuGetErrorName(CUresult code, const char** name) {
  const Error* error = Lookup(code);
  *name = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  const Error* error = Lookup(code);
  *text = error != nullptr ? error->text : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
