// A plugin that is linked with its own runtime; plugin_host.cc opens it.
#include "tests/programs/linkage/call_sequences.h"

extern "C" void RunPlugin(TruthLog* truth) {
  Runtime cuda;
#ifdef BY_ADDRESS  // resolved by the loader, not at the first call
  cuda.malloc = &cudaMalloc;
  cuda.free = &cudaFree;
#else
  cuda.malloc = [](void** pointer, size_t size) { return cudaMalloc(pointer, size); };
  cuda.free = [](void* pointer) { return cudaFree(pointer); };
#endif
  cuda.malloc_async = [](void** pointer, size_t size, cudaStream_t stream) {
    return cudaMallocAsync(pointer, size, stream);
  };
  cuda.free_async = [](void* pointer, cudaStream_t stream) {
    return cudaFreeAsync(pointer, stream);
  };
  cuda.host_alloc = [](void** pointer, size_t size, unsigned int flags) {
    return cudaHostAlloc(pointer, size, flags);
  };
  cuda.free_host = [](void* pointer) { return cudaFreeHost(pointer); };
  RunCalls(cuda, *truth);
}
