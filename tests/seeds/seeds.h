// tests/seeds/seeds.h
//
// The seeds of random tests. A test lists the seeds that it always runs with:
//
//   TEST(RingTest, ReadsBackWhatWasWritten) {
//     ForEachSeed(SeedsUpTo(200, {16285795}), [](uint32_t seed) {
//       std::mt19937 random(seed);
//       ...
//     });
//   }
//
// so that a passing test keeps passing until the code changes. New seeds are drawn on request:
//
//   GMT_TEST_SEED=N     runs seed N only
//   GMT_TEST_SECONDS=S  after the listed seeds, runs new ones for S seconds in each random test
//
// The first seed that fails ends the loop and is printed, even if the process crashes. The commit
// that fixes what it found adds it to the list. For Python: tests/seeds/seeds.py; for the page:
// viewer/page/src/testing/seeds.ts.
//
// The body must not depend on state of the seed before. Thread safety: one loop at a time in a
// process.

#ifndef GMT_TESTS_SEEDS_SEEDS_H_
#define GMT_TESTS_SEEDS_SEEDS_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <numeric>
#include <random>
#include <vector>

// Defined by sanitizers, which end a process without a signal.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace gmt {
namespace internal_seeds {

inline char running[64];  // how to repeat the running seed; empty if none is running

inline void PrintRunning() {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, running, strlen(running));
}

// Prints the seed and raises the signal again.
inline void OnCrash(int signal) {
  PrintRunning();
  raise(signal);
}

inline void PrintSeedOfCrashes() {
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(PrintRunning);
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTERM}) {
    struct sigaction old, action = {};
    action.sa_handler = OnCrash;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(signal, &action, nullptr);
  }
}

// Runs one seed. Returns whether to continue with the next.
template <typename Body>
bool RunSeed(uint32_t seed, Body& body) {
  snprintf(running, sizeof running, "seed %u: repeat with GMT_TEST_SEED=%u\n", seed, seed);
  {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": repeat with GMT_TEST_SEED=" << seed);
    body(seed);
  }
  running[0] = '\0';
  return !testing::Test::HasFailure() && !testing::Test::IsSkipped();
}

}  // namespace internal_seeds

// Returns the seeds 1 to `count`, and `failed`, seeds that have found a bug.
inline std::vector<uint32_t> SeedsUpTo(uint32_t count,
                                       std::initializer_list<uint32_t> failed = {}) {
  std::vector<uint32_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), 1);
  seeds.insert(seeds.end(), failed);
  return seeds;
}

// Calls body(seed) for each of the seeds, as described above. Returns how many passed.
template <typename Body>
uint64_t ForEachSeed(const std::vector<uint32_t>& listed, Body body) {
  internal_seeds::PrintSeedOfCrashes();
  if (const char* only = getenv("GMT_TEST_SEED")) {
    return internal_seeds::RunSeed(static_cast<uint32_t>(strtoul(only, nullptr, 10)), body);
  }
  uint64_t passed = 0;
  for (const uint32_t seed : listed) {
    if (!internal_seeds::RunSeed(seed, body)) return passed;
    ++passed;
  }
  const char* seconds = getenv("GMT_TEST_SECONDS");
  if (seconds == nullptr) return passed;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(strtod(seconds, nullptr));
  std::random_device draw;
  while (std::chrono::steady_clock::now() < end) {
    if (!internal_seeds::RunSeed(draw(), body)) return passed;
    ++passed;
  }
  std::printf("%llu seeds passed\n", static_cast<unsigned long long>(passed));
  return passed;
}

}  // namespace gmt

#endif  // GMT_TESTS_SEEDS_SEEDS_H_
