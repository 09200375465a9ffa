#include "preload/cupti/stream_ids.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

class StreamIdsTest : public testing::Test {
 protected:
  // Returns the handle, or kUnknown.
  static constexpr uint64_t kUnknown = ~uint64_t{0};
  uint64_t Find(uint32_t context, uint32_t stream) {
    uint64_t handle;
    return ids_->Find(context, stream, &handle) ? handle : kUnknown;
  }

  const std::unique_ptr<StreamIds> ids_ = std::make_unique<StreamIds>();
};

TEST_F(StreamIdsTest, NumberThatWasNotLearnedIsUnknown) { EXPECT_EQ(Find(1, 7), kUnknown); }

TEST_F(StreamIdsTest, SameNumberInTwoContextsMeansTwoStreams) {
  ids_->Learn(1, 7, 0x1000);
  ids_->Learn(2, 7, 0x2000);
  EXPECT_EQ(Find(1, 7), 0x1000u);
  EXPECT_EQ(Find(2, 7), 0x2000u);
}

TEST_F(StreamIdsTest, DefaultStreamHasHandleZero) {
  ids_->Learn(1, 7, 0);
  EXPECT_EQ(Find(1, 7), 0u);
}

TEST_F(StreamIdsTest, ContextsAreDistinctFromTheirStreams) {
  ids_->LearnContext(1, 0xc0);
  ids_->Learn(1, 1, 0x1000);
  uint64_t handle;
  ASSERT_TRUE(ids_->FindContext(1, &handle));
  EXPECT_EQ(handle, 0xc0u);
}

TEST_F(StreamIdsTest, FullTableRefusesMoreAndKeepsTheOthers) {
  uint32_t learned = 0;
  while (learned < 2 * StreamIds::kCapacity && ids_->Learn(1, learned, 0x1000 + learned)) ++learned;
  EXPECT_GT(learned, StreamIds::kCapacity / 2);
  EXPECT_LE(learned, StreamIds::kCapacity);
  for (uint32_t i = 0; i < learned; ++i) ASSERT_EQ(Find(1, i), 0x1000u + i);
}

TEST_F(StreamIdsTest, ConcurrentThreadsLearnTheirOwnNumbers) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (uint32_t i = 0; i < 256; ++i) ids_->Learn(t, i, t * 1000 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 0; t < 4; ++t) {
    for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(Find(t, i), t * 1000 + i);
  }
}

}  // namespace
}  // namespace gmt::preload
