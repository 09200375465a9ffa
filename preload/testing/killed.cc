// Allocates three times and kills itself.

#include <signal.h>
#include <unistd.h>

#include "preload/testing/runtime.h"

int main() {
  void* ptr;
  for (size_t i = 1; i <= 3; ++i) cudaMalloc(&ptr, i * 1000003);
  kill(getpid(), SIGKILL);
}
