// errno, exit code and standard output are the target's own. Prints errno after each call; 42 was
// set before.

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
