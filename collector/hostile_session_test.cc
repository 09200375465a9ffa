// A traced process that overwrites its session while it is being collected: random strings of what
// session_fuzz.cc looks for with more patience.

#include "collector/hostile_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "session/session_fixture.h"

namespace gmt::collector {
namespace {

TEST(HostileSessionTest, CollectorSurvivesAnythingInIt) {
  const unsigned first = session::TestSeed();
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(session::TestSeconds(1));
  unsigned seed = first;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    SCOPED_TRACE(::testing::Message() << "GMT_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(random() % 8000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const absl::Status status = HostileSession(bytes.data(), bytes.size()).Play();
    ASSERT_TRUE(status.ok()) << status;
  }
  std::printf("seeds %u to %u (GMT_TEST_SEED repeats, GMT_TEST_SECONDS prolongs)\n", first,
              seed - 1);
}

TEST(HostileSessionTest, NothingButWorkIsNotHostile) {
  EXPECT_TRUE(HostileSession(nullptr, 0).Play().ok());
}

}  // namespace
}  // namespace gmt::collector
