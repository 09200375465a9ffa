// Checks that errno, exit code and standard output of the target are unchanged. Prints errno after
// each call; it was set to 42 before.

#include <errno.h>
#include <stdio.h>

#include "preload/testing/runtime.h"

int main() {
  void* ptr = nullptr;
  errno = 42;
  const int allocated = cudaMalloc(&ptr, 100);
  printf("%d %d\n", allocated, errno);
  errno = 42;
  const int freed = cudaFree(ptr);
  printf("%d %d\n", freed, errno);
  errno = 42;
  const int refused = cudaMalloc(&ptr, 0);
  printf("%d %d\n", refused, errno);
  return 5;
}
