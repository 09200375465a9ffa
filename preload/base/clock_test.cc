#include "preload/base/clock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace gmt::preload {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

uint64_t MonotonicNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

void PrepareFor(const std::string& source) {
  const std::string path = testing::TempDir() + "clock_source_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path) << source << "\n";
  PrepareClock(path.c_str());
}

// Reads the clock for `seconds`, and returns how many times were derived from the counter.
template <typename Check>
uint64_t ReadFor(double seconds, Check check) {
  const uint64_t end = MonotonicNs() + static_cast<uint64_t>(seconds * kSecond);
  uint64_t derived = 0;
  while (MonotonicNs() < end) {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t version = clock_reading.version;
      check();
      derived += clock_reading.use != 0 && clock_reading.version == version ? 1 : 0;
    }
  }
  return derived;
}

// A time is off by what lies between the readings of clock and counter, and by adjustments of the
// clock's rate: by much less than this.
constexpr uint64_t kTolerance = 2000;

TEST(ClockTest, TimesLieBetweenReadingsOfTheSystemsClock) {
  PrepareFor("tsc");
  const uint64_t derived = ReadFor(0.2, [] {
    const uint64_t before = MonotonicNs();
    const uint64_t now = NowNs();
    const uint64_t after = MonotonicNs();
    ASSERT_GE(now + kTolerance, before);
    ASSERT_LE(now, after + kTolerance);
  });
  EXPECT_GT(derived, 0u) << "the counter was not used";
}

TEST(ClockTest, TimesOfAThreadDoNotDecreaseWhileOthersReplaceTheReading) {
  PrepareFor("tsc");
  std::vector<std::thread> threads;
  std::atomic<uint64_t> decreased = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&decreased] {
      uint64_t last = 0;
      ReadFor(0.3, [&] {
        const uint64_t now = NowNs();
        if (now < last) ++decreased;
        last = now;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decreased, 0u);
}

TEST(ClockTest, ReadingThatCannotBeReplacedIsNotUsed) {
  PrepareFor("tsc");
  ReadFor(0.05, [] { NowNs(); });
  const uint64_t version = clock_reading.version.exchange(clock_reading.version | 1);
  const uint64_t before = MonotonicNs();
  const uint64_t now = NowNs();
  EXPECT_GE(now, before);
  EXPECT_LE(now, MonotonicNs());
  clock_reading.version = version;
}

TEST(ClockTest, ForkChildForgetsTheReadingOfItsParent) {
  PrepareFor("tsc");
  const uint64_t version = clock_reading.version.exchange(1);  // while it is replaced
  clock_reading.ns += 3600 * kSecond;
  const pid_t child = fork();
  if (child == 0) {
    PrepareFor("tsc");
    ReadFor(0.05, [] { NowNs(); });
    const uint64_t before = MonotonicNs();
    const uint64_t now = NowNs();
    const bool is_right = now + kTolerance >= before && now <= MonotonicNs() + kTolerance;
    _exit(is_right && clock_reading.version > 1 ? 0 : 1);
  }
  clock_reading.ns -= 3600 * kSecond;
  clock_reading.version = version;
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ClockTest, CounterIsNotUsedIfTheKernelDoesNotUseIt) {
  for (const char* source : {"hpet", "acpi_pm", "tsc-early", ""}) {
    PrepareFor(source);
    clock_reading.use = 0;
    const uint64_t version = clock_reading.version;
    const uint64_t before = MonotonicNs();
    const uint64_t now = NowNs();
    EXPECT_GE(now, before);
    EXPECT_LE(now, MonotonicNs());
    EXPECT_EQ(clock_reading.version, version);
  }
  PrepareClock("/nonexistent");
  EXPECT_GE(NowNs() + kTolerance, MonotonicNs());
}

}  // namespace
}  // namespace gmt::preload
