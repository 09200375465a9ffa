// A process that uses CUPTI, and its children: one that calls exit(), one that calls _exit(), and
// one that tries to use the device, which the driver may refuse. The children must not affect the
// parent's CUPTI or hang in it.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

void Check(const char* what, bool holds) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::exit(1);
}

template <typename Body>
void InChild(const char* name, Body body) {
  const pid_t child = fork();
  if (child == 0) body();
  int status = 0;
  Check(name, waitpid(child, &status, 0) == child && status == 0);
}

void Copy() {
  void* memory;
  char host[64] = {};
  Check("cudaMalloc", cudaMalloc(&memory, sizeof(host)) == cudaSuccess);
  Check("cudaMemcpy", cudaMemcpy(memory, host, sizeof(host), cudaMemcpyHostToDevice) == 0);
  Check("cudaFree", cudaFree(memory) == cudaSuccess);
}

}  // namespace

int main() {
  Copy();
  InChild("a child that ends", [] { std::exit(0); });
  InChild("a child that ends at once", [] { _exit(0); });
  InChild("a child that uses the device", [] {
    void* memory;
    if (cudaMalloc(&memory, 4096) == cudaSuccess) cudaFree(memory);
    std::exit(0);
  });
  Copy();
  return 0;
}
