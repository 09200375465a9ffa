// A traced process that overwrites its session while it is being collected, with random strings of
// operations. session_fuzz.cc searches more thoroughly.

#include "collector/testing/hostile_session.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::collector {
namespace {

TEST(HostileSessionTest, CollectorSurvivesAnythingInIt) {
  ForEachSeed(SeedsUpTo(150), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(random() % 8000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const absl::Status status = HostileSession(bytes.data(), bytes.size()).Play();
    ASSERT_TRUE(status.ok()) << status;
  });
}

TEST(HostileSessionTest, EmptyInputIsHarmless) {
  EXPECT_TRUE(HostileSession(nullptr, 0).Play().ok());
}

}  // namespace
}  // namespace gmt::collector
