// A plugin that is linked with a runtime of its own; plugin_host.cc opens it.
#include "tests/programs/ways_in/stories.h"

extern "C" void RunPlugin(Told* told) {
  Runtime cuda;
#ifdef BY_ADDRESS  // which the loader fills in, and not the first call
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
  TellStory(cuda, *told);
}
