#include "session/in_flight.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace gmt::session {
namespace {

class InFlightTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSlots = 20;
  InFlightSlot slots_[kSlots] = {};
  InFlightTable table_{slots_, kSlots};
};

TEST_F(InFlightTest, SlotDescribesTheCurrentCall) {
  InFlightSlot* slot = table_.Begin(1234, 5, 4096, 99);
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->thread.load(), 1234u);
  EXPECT_EQ(slot->api.load(), 5u);
  EXPECT_EQ(slot->size.load(), 4096u);
  EXPECT_EQ(slot->since_ns.load(), 99u);
}

TEST_F(InFlightTest, EndedCallFreesItsSlot) {
  InFlightSlot* slot = table_.Begin(1234, 5, 4096, 99);
  InFlightTable::End(slot);
  EXPECT_EQ(slot->thread.load(), 0u);
  EXPECT_EQ(table_.Begin(1234, 6, 1, 100), slot);
}

TEST_F(InFlightTest, ThreadsWithTheSameHomeGetDifferentSlots) {
  std::set<InFlightSlot*> used;
  for (uint32_t i = 1; i <= 16; ++i) used.insert(table_.Begin(i * kSlots, 1, 1, 1));
  EXPECT_EQ(used.size(), 16u);
  EXPECT_EQ(used.count(nullptr), 0u);
  EXPECT_EQ(table_.Begin(17 * kSlots, 1, 1, 1), nullptr);
}

TEST_F(InFlightTest, EndAcceptsNull) { InFlightTable::End(nullptr); }

TEST_F(InFlightTest, ThreadsShareTheTable) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10000; ++i) {
        InFlightSlot* slot = table_.Begin(t, t, t, t);
        if (slot == nullptr || slot->thread.load() != t || slot->size.load() != t)
          wrong.fetch_add(1);
        InFlightTable::End(slot);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace gmt::session
