// Measures a pair of allocation and release of PyTorch's caching allocator when several threads
// call it at once. Each thread uses its own blocks of the same device, so what they share is the
// lock of the allocator and, if the program is recorded, the ring of the recording.
//
// Usage: allocator_threads THREADS [PAIRS]
// Prints the nanoseconds of a pair, as one thread sees it: the median of several rounds.
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

constexpr int kRounds = 15;
constexpr size_t kBytes = 1024;

using Clock = std::chrono::steady_clock;

// Returns the time from the first thread's start to the last one's end, divided by the pairs of one
// thread: threads that happen to run one after the other are not faster than those that wait.
double Measure(int threads, int pairs) {
  c10::Allocator* const allocator = c10::GetAllocator(c10::kCUDA);
  std::atomic<int> waiting{threads};
  std::vector<Clock::time_point> begun(threads), ended(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int n = 0; n < 100; ++n) allocator->allocate(kBytes);
      --waiting;
      while (waiting > 0) {
      }
      begun[i] = Clock::now();
      for (int n = 0; n < pairs; ++n) allocator->allocate(kBytes);
      ended[i] = Clock::now();
    });
  }
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double, std::nano> elapsed =
      *std::max_element(ended.begin(), ended.end()) - *std::min_element(begun.begin(), begun.end());
  return elapsed.count() / pairs;
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
  std::vector<double> rounds(kRounds);
  for (double& round : rounds) round = Measure(threads, pairs);
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  printf("%.1f\n", rounds[kRounds / 2]);
}
