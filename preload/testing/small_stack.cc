// The process's first GPU call comes from a thread with the smallest stack that POSIX knows.

#include <limits.h>
#include <pthread.h>

#include "preload/testing/runtime.h"

namespace {

void* Allocate(void*) {
  void* ptr;
  cudaMalloc(&ptr, 4099);
  return nullptr;
}

}  // namespace

int main() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, Allocate, nullptr) != 0) return 1;
  pthread_join(thread, nullptr);
}
