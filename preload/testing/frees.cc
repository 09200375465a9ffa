// Frees during which something else happens.
//   usage: frees recycled    another thread gets the address before the free returns
//          frees refused     the driver refuses the free
#include <pthread.h>
#include <string.h>

#include "preload/testing/runtime.h"

namespace {

void* Recycle(void*) {
  void* again;
  cudaMalloc(&again, kRecycledSize);
  null_runtime_free_may_return = 1;
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  void* ptr;
  cudaMalloc(&ptr, kRecycledSize);
  if (strcmp(argv[1], "refused") == 0) {
    null_runtime_refuses_frees = 1;
    return cudaFree(ptr) == 1 ? 0 : 1;
  }
  pthread_t thread;
  pthread_create(&thread, nullptr, Recycle, nullptr);
  const int result = cudaFree(ptr);
  pthread_join(thread, nullptr);
  return result;
}
