#include "session/live_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

class LiveTableTest : public ::testing::Test {
 protected:
  void Resize(uint64_t count) {
    keys_ = std::vector<std::atomic<uint64_t>>(count);
    entries_ = std::vector<LiveEntry>(count);
    table_ = LiveTable(keys_.data(), entries_.data(), count);
  }
  void SetUp() override { Resize(1024); }

  static LiveValue Sized(uint64_t size) {
    LiveValue live;
    live.size = size;
    return live;
  }
  LiveTable::Result Insert(uint64_t value, uint64_t size, Space space = Space::kDevice) {
    return table_.Insert(space, value, Sized(size));
  }
  bool Erase(uint64_t value, Space space = Space::kDevice) {
    return table_.Erase(space, value, &found_);
  }
  bool Find(uint64_t value, Space space = Space::kDevice) {
    return table_.Find(space, value, &found_);
  }
  std::map<std::pair<Space, uint64_t>, uint64_t> Contents() {
    std::map<std::pair<Space, uint64_t>, uint64_t> contents;
    table_.Scan([&](Space space, uint64_t value, const LiveValue& live) {
      contents[{space, value}] = live.size;
    });
    return contents;
  }

  std::vector<std::atomic<uint64_t>> keys_;
  std::vector<LiveEntry> entries_;
  LiveTable table_;
  LiveValue found_;
};

TEST_F(LiveTableTest, NewTableIsEmpty) {
  EXPECT_FALSE(Find(0x1000));
  EXPECT_TRUE(Contents().empty());
}

TEST_F(LiveTableTest, EveryFieldSurvives) {
  LiveValue live;
  live.ticket = 1;
  live.size = 2;
  live.stream = 3;
  live.time_ns = 4;
  live.stack = 5;
  live.forward_stack = 6;
  live.thread = 0x3fffff;
  live.kind = Kind::kMap;
  live.memory = Memory::kVmm;
  live.device = 8;
  live.context = 9;
  live.api = 10;
  EXPECT_EQ(table_.Insert(Space::kMapping, 0x2000, live), LiveTable::Result::kDone);
  ASSERT_TRUE(Find(0x2000, Space::kMapping));
  EXPECT_EQ(found_, live);
}

TEST_F(LiveTableTest, LayoutAndRolesOfMemorySurvive) {
  LiveValue live = Sized(512 * 3);
  live.memory = Memory::kBlock;
  live.stream = 0x7fff'0000'1234;
  live.layout = 0x87654321;
  live.roles = kGradient;
  EXPECT_EQ(table_.Insert(Space::kBlock, 0x2000, live), LiveTable::Result::kDone);
  ASSERT_TRUE(Find(0x2000, Space::kBlock));
  EXPECT_EQ(found_, live);
  live.memory = Memory::kDevice;
  live.size = 1001;
  EXPECT_EQ(table_.Insert(Space::kDevice, 0x3000, live), LiveTable::Result::kDone);
  ASSERT_TRUE(Find(0x3000));
  EXPECT_EQ(found_, live);
}

TEST_F(LiveTableTest, RolesAddUpAndEndWithTheEntry) {
  LiveTable::Roles roles;
  EXPECT_FALSE(table_.AddRole(Space::kDevice, 0x1000, kGradient, &roles));
  Insert(0x1000, 7);
  ASSERT_TRUE(table_.AddRole(Space::kDevice, 0x1000, kGradient, &roles));
  EXPECT_EQ(roles.before, 0u);
  ASSERT_TRUE(table_.AddParameter(Space::kDevice, 0x1000, 0, &roles));
  EXPECT_EQ(roles.after, kGradient | kParameter);
  Insert(0x1000, 8);
  ASSERT_TRUE(Find(0x1000));
  EXPECT_EQ(found_.roles, 0u) << "a new allocation at the same address";
}

TEST_F(LiveTableTest, SavedEndsWithTheLastNodeThatSavesIt) {
  LiveTable::Roles roles;
  Insert(0x1000, 7);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table_.AddSaver(Space::kDevice, 0x1000, &roles));
  EXPECT_EQ(roles.after, kSaved);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(table_.DropSaver(Space::kDevice, 0x1000, &roles));
  EXPECT_EQ(roles.after, kSaved);
  ASSERT_TRUE(table_.DropSaver(Space::kDevice, 0x1000, &roles));
  EXPECT_EQ(roles.after, 0u);
  ASSERT_TRUE(table_.DropSaver(Space::kDevice, 0x1000, &roles));
  EXPECT_EQ(roles.after, 0u) << "one drop more than adds";
}

TEST_F(LiveTableTest, ParameterIsNotMarkedSavedAndSavedEntryDoesNotBecomeParameter) {
  LiveTable::Roles roles;
  Insert(0x1000, 7);
  Insert(0x2000, 7);
  ASSERT_TRUE(table_.AddParameter(Space::kDevice, 0x1000, 0, &roles));
  ASSERT_TRUE(table_.AddSaver(Space::kDevice, 0x1000, &roles));
  EXPECT_EQ(roles.after, kParameter);
  ASSERT_TRUE(table_.AddSaver(Space::kDevice, 0x2000, &roles));
  ASSERT_TRUE(table_.AddParameter(Space::kDevice, 0x2000, 0, &roles));
  EXPECT_EQ(roles.after, kSaved);
}

TEST_F(LiveTableTest, EraseWithoutReadingTheValue) {
  Insert(0x1000, 7);
  table_.Prepare(Space::kDevice, 0x1000);
  table_.Prepare(Space::kDevice, ~uint64_t{0});
  EXPECT_TRUE(table_.Erase(Space::kDevice, 0x1000));
  EXPECT_FALSE(table_.Erase(Space::kDevice, 0x1000));
  EXPECT_FALSE(table_.Erase(Space::kDevice, ~uint64_t{0}));
  EXPECT_TRUE(Contents().empty());
}

TEST_F(LiveTableTest, ErasedEntryIsReturnedOnce) {
  Insert(0x1000, 7);
  EXPECT_TRUE(Erase(0x1000));
  EXPECT_EQ(found_.size, 7u);
  EXPECT_FALSE(Erase(0x1000));
  EXPECT_FALSE(Find(0x1000));
}

TEST_F(LiveTableTest, OneAddressIsLiveInSeveralSpaces) {
  Insert(0x1000, 1, Space::kDevice);
  Insert(0x1000, 2, Space::kBlock);
  EXPECT_TRUE(Erase(0x1000, Space::kBlock));
  EXPECT_TRUE(Find(0x1000));
  EXPECT_EQ(found_.size, 1u);
}

TEST_F(LiveTableTest, InsertingAgainReplaces) {
  Insert(0x1000, 1);
  Insert(0x1000, 2);
  EXPECT_TRUE(Find(0x1000));
  EXPECT_EQ(found_.size, 2u);
  EXPECT_EQ(Contents().size(), 1u);
}

TEST_F(LiveTableTest, FullTableRejectsInsertsAndKeepsItsEntries) {
  Resize(16);
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(Insert(0x1000 + i, i), LiveTable::Result::kDone);
  EXPECT_EQ(Insert(0x9000, 1), LiveTable::Result::kFull);
  EXPECT_EQ(Contents().size(), 16u);
  EXPECT_TRUE(Erase(0x1003));
  EXPECT_EQ(Insert(0x9000, 1), LiveTable::Result::kDone);
}

TEST_F(LiveTableTest, PlacesOfErasedEntriesAreReusedIndefinitely) {
  Resize(16);
  for (uint64_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(Insert(0x1000 + i * 512, i), LiveTable::Result::kDone);
    ASSERT_TRUE(Erase(0x1000 + i * 512));
  }
}

TEST_F(LiveTableTest, ValueTooLargeForTheKeyIsRejected) {
  EXPECT_EQ(Insert(uint64_t{1} << 60, 1), LiveTable::Result::kUnrepresentable);
  EXPECT_FALSE(Erase(uint64_t{1} << 60));
  EXPECT_FALSE(Find(uint64_t{1} << 60));
}

TEST_F(LiveTableTest, WriterKilledWhileFillingAnEntryLeavesNone) {
  Insert(0x1000, 1);
  for (auto& key : keys_) {
    if (key.load() == kKeyEmpty) {
      key.store(kKeyClaimed);
      break;
    }
  }
  EXPECT_EQ(Contents().size(), 1u);
}

TEST_F(LiveTableTest, WriterKilledWhileReplacingHidesTheEntryUntilItIsReplacedAgain) {
  Insert(0x1000, 1);
  for (LiveEntry& entry : entries_) {
    if (entry.size.load() == 1) entry.version.fetch_add(1);
  }
  EXPECT_FALSE(Find(0x1000));
  Insert(0x1000, 2);
  EXPECT_TRUE(Find(0x1000));
  EXPECT_EQ(found_.size, 2u);
}

TEST_F(LiveTableTest, AgreesWithAMapOverRandomCalls) {
  ForEachSeed({1}, [&](uint32_t seed) {
    Resize(1024);
    std::mt19937_64 random(seed);
    std::map<std::pair<Space, uint64_t>, uint64_t> oracle;
    for (int i = 0; i < 100000; ++i) {
      const Space space = random() % 2 ? Space::kDevice : Space::kBlock;
      const uint64_t value = 0x7f0000000000 + random() % 600 * 512;
      if (random() % 2) {
        const uint64_t size = random();
        ASSERT_EQ(Insert(value, size, space), LiveTable::Result::kDone);
        oracle[{space, value}] = size;
      } else {
        ASSERT_EQ(Erase(value, space), oracle.erase({space, value}) == 1);
      }
    }
    EXPECT_EQ(Contents(), oracle);
  });
}

TEST_F(LiveTableTest, ReferencesAreDroppedAsOftenAsTheyWereAdded) {
  EXPECT_FALSE(table_.AddReference(Space::kPhysical, 7));
  Insert(7, 64, Space::kPhysical);
  EXPECT_FALSE(table_.DropReference(Space::kPhysical, 7));
  EXPECT_TRUE(table_.AddReference(Space::kPhysical, 7));
  EXPECT_TRUE(table_.AddReference(Space::kPhysical, 7));
  EXPECT_TRUE(table_.DropReference(Space::kPhysical, 7));
  EXPECT_TRUE(table_.DropReference(Space::kPhysical, 7));
  EXPECT_FALSE(table_.DropReference(Space::kPhysical, 7));
  EXPECT_TRUE(Find(7, Space::kPhysical));
  EXPECT_EQ(found_.size, 64u);
  EXPECT_EQ(found_.api, 0);
}

}  // namespace
}  // namespace gmt::session
