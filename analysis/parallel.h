// analysis/parallel.h
//
// Independent computations on all processors. Threads are started for a call and end within it.

#ifndef GMT_ANALYSIS_PARALLEL_H_
#define GMT_ANALYSIS_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace gmt::analysis {

// Calls run(0), run(1), ... run(count - 1), several at a time, and returns when all have ended.
// `run` must not throw.
template <typename Run>
void ForEachInParallel(size_t count, const Run& run) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) run(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(count, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

// Calls `a` and `b`, if possible at the same time, and returns when both have ended. REQUIRES: they
// do not throw, and neither writes what the other one reads or writes.
template <typename A, typename B>
void RunBoth(const A& a, const B& b) {
  ForEachInParallel(2, [&](size_t i) { i == 0 ? a() : b(); });
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_PARALLEL_H_
