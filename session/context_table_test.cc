#include "session/context_table.h"

#include <array>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gmt::session {
namespace {

class ContextTableTest : public testing::Test {
 protected:
  std::array<ContextEntry, 4> entries_ = {};
  ContextTable table_{entries_.data(), entries_.size()};
  bool is_new_ = false;
};

TEST_F(ContextTableTest, ContextsAreNumberedFromOneInTheOrderSeen) {
  EXPECT_EQ(table_.Enter(0x70, 0, &is_new_), 1);
  EXPECT_TRUE(is_new_);
  EXPECT_EQ(table_.Enter(0x80, 3, &is_new_), 2);
  EXPECT_EQ(table_.Find(0x80).number, 2);
  EXPECT_EQ(table_.Find(0x80).device, 3);
  EXPECT_EQ(table_.Find(0x90).number, 0);
}

TEST_F(ContextTableTest, ReusedHandleKeepsItsNumberAndMayChangeItsDevice) {
  table_.Enter(0x70, 0, &is_new_);
  table_.End(1);
  EXPECT_EQ(table_.Find(0x70).device, kNoDevice);
  EXPECT_EQ(table_.Enter(0x70, 1, &is_new_), 1);
  EXPECT_FALSE(is_new_);
  EXPECT_EQ(table_.Find(0x70).device, 1);
}

TEST_F(ContextTableTest, FullTableReturnsZero) {
  for (uint64_t handle = 1; handle <= 4; ++handle) table_.Enter(handle, 0, &is_new_);
  EXPECT_EQ(table_.Enter(5, 0, &is_new_), 0);
  EXPECT_EQ(table_.Find(5).number, 0);
  EXPECT_EQ(table_.Find(4).number, 4);
}

TEST_F(ContextTableTest, ThreadsThatEnterOneContextAgreeOnItsNumber) {
  std::vector<std::thread> threads;
  std::atomic<int> created{0};
  std::array<uint8_t, 8> numbers = {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    threads.emplace_back([&, i] {
      bool is_new;
      numbers[i] = table_.Enter(0x1000, 0, &is_new);
      created += is_new;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint8_t number : numbers) EXPECT_EQ(number, 1);
  EXPECT_EQ(created, 1);
}

}  // namespace
}  // namespace gmt::session
