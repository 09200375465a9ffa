#include "viewer/index/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace gmt::viewer {
namespace {

using Tasks = std::vector<std::function<void()>>;

TEST(ParallelForTest, RunsAndReportsEveryTaskOnce) {
  std::vector<std::atomic<int>> runs(100);
  Tasks tasks;
  for (auto& run : runs) tasks.push_back([&run] { ++run; });
  std::vector<size_t> reported;
  ParallelFor(tasks, [&](size_t ended) { reported.push_back(ended); });
  for (const auto& run : runs) EXPECT_EQ(run, 1);
  ASSERT_EQ(reported.size(), runs.size());
  for (size_t i = 0; i < reported.size(); ++i) EXPECT_EQ(reported[i], i + 1);
}

TEST(ParallelForTest, AcceptsNoTasks) {
  ParallelFor({}, [](size_t) { FAIL(); });
}

TEST(ParallelForTest, RethrowsAfterAllRunningTasksHaveEnded) {
  constexpr int kTasks = 1000;
  std::atomic<int> running = 0, begun = 0;
  std::atomic<bool> has_thrown = false;
  Tasks tasks(kTasks, [&] {
    ++running;
    const int number = ++begun;
    // Otherwise the other threads would finish all tasks before the exception is caught.
    if (has_thrown) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    --running;
    if (number != 3) return;
    has_thrown = true;
    throw std::bad_alloc();
  });
  EXPECT_THROW(ParallelFor(tasks, [](size_t) {}), std::bad_alloc);
  EXPECT_EQ(running, 0);
  EXPECT_LT(begun, kTasks);
}

}  // namespace
}  // namespace gmt::viewer
