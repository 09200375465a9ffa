// Measures a pair of allocation and release of PyTorch's caching allocator when several threads
// call it at once. Each thread uses its own blocks of the same device, so what they share is the
// lock of the allocator and, if the program is recorded, the ring of the recording.
//
// Usage: allocator_threads THREADS [PAIRS]
// Prints the nanoseconds of a pair, as one thread sees it: the minimum of several rounds.
// scripts/bench --torch compiles it with the headers of the PyTorch that it measures.

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 9;
constexpr size_t kBytes = 1024;

// Returns the mean of all threads.
double Measure(int threads, int pairs) {
  c10::Allocator* const allocator = c10::GetAllocator(c10::kCUDA);
  std::atomic<int> waiting{threads};
  std::vector<double> took(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int n = 0; n < 100; ++n) allocator->allocate(kBytes);
      --waiting;
      while (waiting > 0) {
      }
      const auto started = std::chrono::steady_clock::now();
      for (int n = 0; n < pairs; ++n) allocator->allocate(kBytes);
      const std::chrono::duration<double, std::nano> elapsed =
          std::chrono::steady_clock::now() - started;
      took[i] = elapsed.count() / pairs;
    });
  }
  double sum = 0;
  for (int i = 0; i < threads; ++i) {
    running[i].join();
    sum += took[i];
  }
  return sum / threads;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2;
  const int pairs = argc > 2 ? atoi(argv[2]) : 20000;
  if (threads < 1 || pairs < 1) {
    fprintf(stderr, "usage: allocator_threads THREADS [PAIRS]\n");
    return 2;
  }
  at::empty({1 << 20}, at::device(at::kCUDA));  // starts CUDA and fills the allocator's cache
  double least = Measure(threads, pairs);
  for (int round = 1; round < kRounds; ++round) least = std::min(least, Measure(threads, pairs));
  printf("%.1f\n", least);
}
