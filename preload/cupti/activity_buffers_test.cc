#include "preload/cupti/activity_buffers.h"

#include <set>

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

class ActivityBuffersTest : public testing::Test {
 protected:
  ActivityBuffersTest() { EXPECT_TRUE(buffers_.Map()); }

  ActivityBuffers buffers_;
};

TEST(UnmappedActivityBuffersTest, HasNoBuffers) {
  ActivityBuffers buffers;
  EXPECT_EQ(buffers.Take(), nullptr);
  EXPECT_FALSE(buffers.Owns(reinterpret_cast<const uint8_t*>(4096)));
}

TEST_F(ActivityBuffersTest, HandsOutEachBufferOnceUntilNoneIsLeft) {
  std::set<uint8_t*> taken;
  for (uint32_t i = 0; i < ActivityBuffers::kCount; ++i) {
    uint8_t* buffer = buffers_.Take();
    ASSERT_NE(buffer, nullptr);
    ASSERT_TRUE(buffers_.Owns(buffer + ActivityBuffers::kBytes - 1));
    buffer[0] = buffer[ActivityBuffers::kBytes - 1] = 1;
    ASSERT_TRUE(taken.insert(buffer).second);
  }
  EXPECT_EQ(buffers_.Take(), nullptr);
}

TEST_F(ActivityBuffersTest, HandsOutAReturnedBufferAgain) {
  for (uint32_t i = 1; i < ActivityBuffers::kCount; ++i) buffers_.Take();
  uint8_t* last = buffers_.Take();
  buffers_.Give(last);
  EXPECT_EQ(buffers_.Take(), last);
}

TEST_F(ActivityBuffersTest, DoesNotOwnAnotherToolsBuffer) {
  const uint8_t theirs[64] = {};
  EXPECT_FALSE(buffers_.Owns(theirs));
}

}  // namespace
}  // namespace gmt::preload
