// The rule of columns, and events through columns and back.

#include "format/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "format/event_columns.h"
#include "format/event_encoder.h"
#include "format/live_columns.h"
#include "format/random_events.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Column = google::protobuf::RepeatedField<uint64_t>;

Column Trimmed(const std::vector<uint64_t>& values) {
  Column column(values.begin(), values.end());
  TrimColumn(&column);
  return column;
}

TEST(ColumnsTest, ColumnOfZerosIsEmpty) { EXPECT_THAT(Trimmed({0, 0, 0}), IsEmpty()); }
TEST(ColumnsTest, ConstantColumnIsOneValue) { EXPECT_THAT(Trimmed({7, 7, 7}), ElementsAre(7)); }
TEST(ColumnsTest, RepeatedTailIsDropped) {
  EXPECT_THAT(Trimmed({1, 2, 3, 3}), ElementsAre(1, 2, 3));
}
TEST(ColumnsTest, ZerosAfterAValueKeepOneZero) {
  EXPECT_THAT(Trimmed({5, 0, 0}), ElementsAre(5, 0));
}
TEST(ColumnsTest, EmptyColumnStaysEmpty) { EXPECT_THAT(Trimmed({}), IsEmpty()); }
TEST(ColumnsTest, EmptyColumnReadsAsZero) { EXPECT_EQ(ColumnAt(Column(), 12), 0u); }
TEST(ColumnsTest, RowBehindTheEndReadsAsTheLast) { EXPECT_EQ(ColumnAt(Trimmed({1, 2}), 99), 2u); }

TEST(ColumnsTest, TrimmedColumnsReadAsTheyWere) {
  ForEachSeed(SeedsUpTo(500), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> values(random() % 12);
    for (uint64_t& value : values) value = random() % 3;
    const Column column = Trimmed(values);
    for (size_t row = 0; row < values.size(); ++row) {
      EXPECT_EQ(ColumnAt(column, static_cast<int>(row)), values[row]);
    }
  });
}

TEST(EventColumnsTest, RandomEventsComeBackExactly) {
  ForEachSeed(SeedsUpTo(200), [](uint32_t seed) {
    RandomEvents random(seed);
    AcquisitionHistory written, read;
    for (int chunk = 0; chunk < 3; ++chunk) {
      EventBatch batch, back;
      for (int n = 0; n < 60; ++n) random.AddTo(&batch, 9);
      const gmt::Events columns = EncodeEvents(batch, 1000, &written);
      ASSERT_TRUE(DecodeEvents(columns, 1000, Returns::kAsRecorded, &read, &back).ok());
      ASSERT_EQ(back.events, batch.events);
      ASSERT_EQ(back.others, batch.others);
    }
  });
}

TEST(EventColumnsTest, RandomLiveSetsComeBackExactly) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    RandomEvents random(seed);
    EventBatch batch;
    for (int n = 0; n < 200; ++n) random.AddTo(&batch, 9);
    std::vector<Event> live;
    for (Event event : batch.events) {
      if (FamilyOf(event.kind) != Family::kAcquisition) continue;
      event.duration_ns = event.total_allocated = event.total_reserved = 0;
      event.result = event.flags = 0;
      live.push_back(event);
    }
    const absl::StatusOr<std::vector<Event>> back = DecodeLive(EncodeLive(live));
    ASSERT_TRUE(back.ok());
    ASSERT_EQ(*back, live);
  });
}

TEST(EventColumnsTest, ClaimOfBillionsOfEventsIsRefused) {
  gmt::Events columns;
  columns.set_count(4'000'000'000);
  AcquisitionHistory history;
  EventBatch batch;
  EXPECT_FALSE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_THAT(batch.events, IsEmpty());
}

TEST(EventColumnsTest, EventWithoutItsDetailIsDamage) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(Events::SAMPLE);
  AcquisitionHistory history;
  EventBatch batch;
  EXPECT_FALSE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
}

TEST(EventColumnsTest, KindOfALaterVersionIsDeliveredAsItsNumber) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(static_cast<Events::Kind>(4711));
  AcquisitionHistory history;
  EventBatch batch;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_EQ(FamilyOf(batch.events.at(0).kind), Family::kOther);
}

TEST(EventColumnsTest, DistanceBeyondTheBeginningFindsNothing) {
  gmt::Events columns;
  columns.set_count(1);
  columns.add_kind(Events::FREE);
  columns.mutable_returns()->add_distance(1'000'000);
  columns.mutable_returns()->add_same(0xFF);
  AcquisitionHistory history;
  EventBatch batch;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kCompleted, &history, &batch).ok());
  EXPECT_FALSE(batch.events.at(0).has(kHasAddress));
}

}  // namespace
}  // namespace gmt::format
