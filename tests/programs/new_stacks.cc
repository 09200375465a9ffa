// Allocates from a new stack every time: measures the cost of a stack's first use, and exercises
// more stacks than the session has room for. Also built as a library, which Python calls.
//
// Usage: new_stacks COUNT FRAMES
//   COUNT   allocations, each from a different stack, each freed at once
//   FRAMES  native frames of each, as backtrace() counts them; at least 25
// Prints one JSON line: percentiles of nanoseconds per cudaMalloc.
#include <execinfo.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" int cudaMalloc(void** pointer, size_t size);
extern "C" int cudaFree(void* pointer);

namespace {

constexpr int kTurns = 20;  // levels that call Left() or Right(): a million different stacks

double NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

int Left(uint32_t way, int levels, double* ns);
int Right(uint32_t way, int levels, double* ns);

int Allocate(double* ns) {
  void* pointer;
  const double start = NowNs();
  const int result = cudaMalloc(&pointer, 4096);
  *ns = NowNs() - start;
  return result + cudaFree(pointer);
}

// Uses the bits of `way` from the innermost level outwards, so that successive stacks share their
// outer frames, as those of a program do.
int Turn(uint32_t way, int levels, double* ns) {
  if (levels == 0) return Allocate(ns);
  return levels <= kTurns && (way >> (levels - 1) & 1) != 0 ? Right(way, levels, ns)
                                                            : Left(way, levels, ns);
}

// The volatile read after the call prevents a tail call.
__attribute__((noinline)) int Left(uint32_t way, int levels, double* ns) {
  volatile int result = Turn(way, levels - 1, ns);
  return result;
}
__attribute__((noinline)) int Right(uint32_t way, int levels, double* ns) {
  volatile int result = Turn(way, levels - 1, ns);
  return result;
}

}  // namespace

extern "C" int new_stacks(int count, int frames) {
  void* here[512];
  const int levels = std::max(kTurns, frames - backtrace(here, 512));
  std::vector<double> costs(static_cast<size_t>(count));
  int failed = 0;
  for (int n = 0; n < count; ++n)
    failed |= Turn(static_cast<uint32_t>(n), levels, &costs[static_cast<size_t>(n)]);
  if (failed != 0) {
    std::fprintf(stderr, "new_stacks: a CUDA call failed\n");
    return 1;
  }
  std::sort(costs.begin(), costs.end());
  const auto at = [&](double part) {
    return costs[static_cast<size_t>(part * static_cast<double>(costs.size() - 1))];
  };
  std::printf("{\"p50\": %.0f, \"p90\": %.0f, \"p99\": %.0f, \"max\": %.0f}\n", at(0.5), at(0.9),
              at(0.99), at(1));
  return std::fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return new_stacks(std::atoi(argv[1]), std::atoi(argv[2]));
}
