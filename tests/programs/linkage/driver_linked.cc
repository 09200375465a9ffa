// A program that is linked with the driver and calls it without the runtime.
#include "tests/programs/linkage/call_sequences.h"

int main() {
  Driver cuda;
  TruthLog truth;
  cuda.init = [](unsigned int flags) { return cuInit(flags); };
  cuda.retain = [](CUcontext* context, CUdevice device) {
    return cuDevicePrimaryCtxRetain(context, device);
  };
  cuda.set_current = [](CUcontext context) { return cuCtxSetCurrent(context); };
  cuda.alloc = [](CUdeviceptr* pointer, size_t size) { return cuMemAlloc(pointer, size); };
  cuda.free = [](CUdeviceptr pointer) { return cuMemFree(pointer); };
  cuda.alloc_async = [](CUdeviceptr* pointer, size_t size, CUstream stream) {
    return cuMemAllocAsync(pointer, size, stream);
  };
  cuda.free_async = [](CUdeviceptr pointer, CUstream stream) {
    return cuMemFreeAsync(pointer, stream);
  };
  RunCalls(cuda, truth);
  return truth.Finish();
}
