// Allocates and frees device memory as commands on standard input request, one per line, so that a
// test can observe the effect of each. First makes a request that no device can satisfy, which
// starts the recording, and prints "ready PID". The program exits at the end of the input.
//
//   take BYTES    allocates; prints "took ADDRESS NS", NS being CLOCK_REALTIME after the call
//   give ADDRESS  frees; prints "gave NS"
//   pass N BYTES  N times allocates and frees; prints "passed NS"
//   leave CODE    exits with CODE
//
// Usage: memory_commands
#include <cuda_runtime_api.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kTooMuch = size_t{1} << 50;

uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

void* Take(size_t bytes) {
  void* address = nullptr;
  if (cudaMalloc(&address, bytes) == cudaSuccess) return address;
  std::fprintf(stderr, "memory_commands: no %zu bytes\n", bytes);
  std::exit(1);
}

void Pass(uint64_t count, size_t bytes) {
  for (uint64_t i = 0; i < count; ++i) cudaFree(Take(bytes));
}

bool Obey(const char* line) {
  uint64_t a = 0, b = 0;
  if (std::sscanf(line, "take %" SCNu64, &a) == 1) {
    void* address = Take(a);
    std::printf("took %p %" PRIu64 "\n", address, NowNs());
  } else if (std::sscanf(line, "give %" SCNx64, &a) == 1) {
    cudaFree(reinterpret_cast<void*>(a));
    std::printf("gave %" PRIu64 "\n", NowNs());
  } else if (std::sscanf(line, "pass %" SCNu64 " %" SCNu64, &a, &b) == 2) {
    Pass(a, b);
    std::printf("passed %" PRIu64 "\n", NowNs());
  } else if (std::sscanf(line, "leave %" SCNu64, &a) == 1) {
    std::exit(static_cast<int>(a));
  } else {
    return false;
  }
  std::fflush(stdout);
  return true;
}

}  // namespace

int main() {
  void* none = nullptr;
  if (cudaMalloc(&none, kTooMuch) == cudaSuccess) return 1;
  (void)cudaGetLastError();
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (!Obey(line)) return 2;
  }
  return 0;
}
