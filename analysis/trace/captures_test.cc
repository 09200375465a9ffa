#include "analysis/trace/captures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

TEST(CapturesTest, SameCapturesAreInProgressAsInAWalkOverAll) {
  ForEachSeed(SeedsUpTo(50), [](uint32_t seed) {
    std::mt19937 random(seed);
    Trace trace;
    Step step = 0;
    for (int i = 0; i < 300; ++i) {
      Capture capture;
      capture.stream = random() % 4;
      capture.begin = step += random() % 3;
      capture.end = capture.begin + random() % 20;
      trace.captures.push_back(capture);
    }
    for (Step birth = 0; birth < step + 25; ++birth) {
      for (uint64_t stream = 0; stream < 4; ++stream) {
        const auto of_stream = [&](const Capture& capture) { return capture.stream == stream; };
        const bool slow =
            std::any_of(trace.captures.begin(), trace.captures.end(), [&](const Capture& capture) {
              return capture.begin < birth && birth <= capture.end && of_stream(capture);
            });
        ASSERT_EQ(AnyCaptureAt(trace, birth, of_stream), slow) << birth << " of " << stream;
      }
    }
  });
}

TEST(CapturesTest, NoMoreThanTheLatestCapturesAreExamined) {
  Trace trace;
  for (Step begin = 0; begin < 1000; ++begin) {
    Capture& capture = trace.captures.emplace_back();
    capture.begin = begin;
    capture.end = begin < 500 ? begin + 1 : kNever;
  }
  size_t examined = 0;
  const auto count = [&](const Capture&) {
    ++examined;
    return false;
  };
  EXPECT_FALSE(AnyCaptureAt(trace, 400, count));
  EXPECT_EQ(examined, 1u);
  EXPECT_FALSE(AnyCaptureAt(trace, 2000, count));
  EXPECT_EQ(examined, 1 + kCapturesAtOnce);
}

}  // namespace
}  // namespace gmt::analysis
