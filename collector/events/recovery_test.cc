#include "collector/events/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gmt::collector {
namespace {

using session::Kind;
using session::LiveValue;
using session::Record;
using session::Space;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The gap is before ticket 100. Tests state what the model knew, what the table holds and what is
// read after the gap.
class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() { recovery_.Begin(100); }

  static Record Event(Kind kind, uint64_t address) {
    Record record;
    record.kind = kind;
    record.space = Space::kDevice;
    record.memory = session::Memory::kDevice;
    record.value = address;
    return record;
  }
  void Known(uint64_t address, uint64_t ticket) {
    model_.Apply(Event(Kind::kAlloc, address), ticket);
  }
  void InTable(uint64_t address, uint64_t ticket) {
    table_.Insert(Space::kDevice, address, MakeLive(Event(Kind::kAlloc, address), ticket));
  }
  void Read(Kind kind, uint64_t address, uint64_t ticket) {
    recovery_.Hold(Event(kind, address), ticket);
  }

  void Resolve() {
    recovery_.Scan(table_, [] { return uint64_t{200}; });
    const Corrections corrections = recovery_.Resolve(model_, &released_);
    for (const auto& [place, live] : corrections.ended) ended_.push_back(place.value);
    for (const auto& [place, live] : corrections.appeared) appeared_.push_back(place.value);
    for (const auto& [place, live] : corrections.other_roles) other_roles_.push_back(place.value);
  }

  std::vector<std::atomic<uint64_t>> keys_ = std::vector<std::atomic<uint64_t>>(64);
  std::vector<session::LiveEntry> entries_ = std::vector<session::LiveEntry>(64);
  session::LiveTable table_{keys_.data(), entries_.data(), 64};
  LiveModel model_;
  Recovery recovery_;
  std::vector<HeldRecord> released_;
  std::vector<uint64_t> ended_, appeared_, other_roles_;
};

TEST_F(RecoveryTest, EntryInBothNeedsNoCorrection) {
  Known(1, 10);
  InTable(1, 10);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(appeared_, IsEmpty());
}

TEST_F(RecoveryTest, EntryMissingInTheTableWasFreedInTheGap) {
  Known(1, 10);
  Resolve();
  EXPECT_THAT(ended_, ElementsAre(1));
}

TEST_F(RecoveryTest, EntryMissingInTheModelWasAllocatedInTheGap) {
  InTable(2, 60);
  InTable(1, 70);
  Resolve();
  EXPECT_THAT(appeared_, ElementsAre(2, 1));  // in the order of allocation
}

TEST_F(RecoveryTest, RolesChangedInTheGapAreReturned) {
  Known(0x1000, 10);
  Known(0x2000, 11);
  InTable(0x1000, 10);
  InTable(0x2000, 11);
  session::LiveTable::Roles roles;
  table_.AddRole(Space::kDevice, 0x2000, session::kGradient, &roles);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(appeared_, IsEmpty());
  EXPECT_THAT(other_roles_, ElementsAre(0x2000));
}

TEST_F(RecoveryTest, AddressReusedInTheGapEndsAndAppears) {
  Known(1, 10);
  InTable(1, 60);
  Resolve();
  EXPECT_THAT(ended_, ElementsAre(1));
  EXPECT_THAT(appeared_, ElementsAre(1));
}

TEST_F(RecoveryTest, AllocationAfterTheGapComesFromItsOwnRecord) {
  InTable(1, 120);
  Read(Kind::kAlloc, 1, 120);
  Resolve();
  EXPECT_THAT(appeared_, IsEmpty());
  EXPECT_EQ(released_.size(), 1u);
}

TEST_F(RecoveryTest, FreeAfterTheGapEndsAKnownEntry) {
  Known(1, 10);
  Read(Kind::kFree, 1, 130);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(RecoveryTest, FreeAndReuseAfterTheGapNeedNoCorrection) {
  Known(1, 10);
  Read(Kind::kFree, 1, 130);
  Read(Kind::kAlloc, 1, 131);
  InTable(1, 131);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(appeared_, IsEmpty());
}

TEST_F(RecoveryTest, AllocationOverAKnownOneMeansThatItsFreeWasLost) {
  Known(1, 10);
  Read(Kind::kAlloc, 1, 130);
  InTable(1, 130);
  Resolve();
  EXPECT_THAT(ended_, ElementsAre(1));
  EXPECT_THAT(appeared_, IsEmpty());
}

TEST_F(RecoveryTest, TableAheadOfTheRecordsIsNotUsedBeforeThem) {
  // Freed at 150 and scanned afterwards: not in the table, yet live at the gap's end.
  Known(1, 10);
  Read(Kind::kSync, 0, 140);
  Read(Kind::kFree, 1, 150);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(RecoveryTest, ContextResetAfterTheGapEndsKnownEntries) {
  Record known = Event(Kind::kAlloc, 1), reset = Event(Kind::kContextReset, 0);
  known.context = reset.context = 3;
  reset.space = Space::kNone;
  model_.Apply(known, 10);
  recovery_.Hold(reset, 130);
  Resolve();
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(RecoveryTest, InvalidEntryIsSkipped) {
  LiveValue scribbled = MakeLive(Event(Kind::kAlloc, 1), 60);
  scribbled.memory = static_cast<session::Memory>(200);
  table_.Insert(Space::kDevice, 1, scribbled);
  Resolve();
  EXPECT_THAT(appeared_, IsEmpty());
}

TEST_F(RecoveryTest, SettlesAfterEverythingWrittenDuringTheScanIsRead) {
  EXPECT_FALSE(recovery_.Settled(1000));
  recovery_.Scan(table_, [] { return uint64_t{110}; });
  EXPECT_FALSE(recovery_.Settled(109));
  EXPECT_TRUE(recovery_.Settled(110));
}

TEST_F(RecoveryTest, MoreLossesReleaseHeldRecordsAndStartAgain) {
  Read(Kind::kAlloc, 1, 120);
  recovery_.Scan(table_, [] { return uint64_t{200}; });
  EXPECT_EQ(recovery_.Begin(300).size(), 1u);
  EXPECT_TRUE(recovery_.active());
  EXPECT_FALSE(recovery_.scanned());
  EXPECT_EQ(recovery_.held(), 0u);
}

}  // namespace
}  // namespace gmt::collector
