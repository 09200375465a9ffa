// Measures what a cudaMalloc with its cudaFree costs, for scripts/bench: pairs of calls below a stack of known depth, and
// clock_gettime in the same process as a yardstick that every machine has.
//
// Usage: call_cost PAIRS DEPTH
// Prints one JSON line: the median over rounds of nanoseconds per pair and per clock_gettime.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" int cudaMalloc(void** pointer, size_t size);
extern "C" int cudaFree(void* pointer);

namespace {

// Many short rounds: one that another process interrupts must not move the median.
constexpr int kRounds = 301;

double NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void Pairs(int pairs) {
  for (int i = 0; i < pairs; ++i) {
    void* pointer = nullptr;
    if (cudaMalloc(&pointer, 4096) != 0 || cudaFree(pointer) != 0) {
      std::fprintf(stderr, "call_cost: a CUDA call failed\n");
      std::exit(1);
    }
  }
}

// One frame per level: the volatile read after the call keeps it from becoming a jump.
__attribute__((noinline)) int Below(int depth, int pairs) {
  if (depth == 0) {
    Pairs(pairs);
    return 0;
  }
  volatile int level = Below(depth - 1, pairs);
  return level + 1;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int pairs = std::atoi(argv[1]), depth = std::atoi(argv[2]);
  Below(depth, pairs);  // context, session, caches
  std::vector<double> calls, clocks;
  for (int round = 0; round < kRounds; ++round) {
    double start = NowNs();
    Below(depth, pairs);
    calls.push_back((NowNs() - start) / pairs);
    start = NowNs();
    for (int i = 0; i < pairs; ++i) NowNs();
    clocks.push_back((NowNs() - start) / pairs);
  }
  std::printf("{\"pair_ns\": %.1f, \"clock_ns\": %.2f}\n", Median(calls), Median(clocks));
}
