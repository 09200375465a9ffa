#include "format/expected_totals.h"

#include <gtest/gtest.h>

#include <vector>

#include "format/allocator_trace.h"
#include "format/event_columns.h"
#include "format/event_encoder.h"

namespace gmt::format {
namespace {

EventBatch TrainingLoopEvents(int events) {
  AllocatorTrace trace(7);
  EventBatch batch;
  for (int n = 0; n < events; ++n) {
    Event& event = batch.events.emplace_back(trace.Next());
    event.heap = event.memory == BLOCK ? 2 : 1;
  }
  return batch;
}

TEST(ExpectedTotalsTest, TotalsThatFollowFromTheSizesNeedNoColumn) {
  AcquisitionHistory history;
  const gmt::Events columns = EncodeEvents(TrainingLoopEvents(5000), 0, &history);
  for (const int64_t difference : columns.returns().total_allocated()) EXPECT_EQ(difference, 0);
  int known = 0;
  for (const int64_t difference : columns.acquisitions().total_allocated()) {
    known += difference == 0 ? 1 : 0;
  }
  EXPECT_GE(known, columns.acquisitions().total_allocated_size() - 1);
}

TEST(ExpectedTotalsTest, TotalsOfATrainingLoopSurviveEncoding) {
  const EventBatch batch = TrainingLoopEvents(5000);
  AcquisitionHistory written, read;
  const gmt::Events columns = EncodeEvents(batch, 0, &written);
  EventBatch back;
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kAsRecorded, &read, &back).ok());
  EXPECT_EQ(back.events, batch.events);
}

// The sizes that determine the totals are lost, so the totals must be unknown, not invented.
TEST(ExpectedTotalsTest, TotalsAfterAFreeOfALostAllocationAreUnknown) {
  EventBatch batch = TrainingLoopEvents(60000), first, second, back;
  first.events.assign(batch.events.begin(), batch.events.begin() + 20000);
  second.events.assign(batch.events.begin() + 20000, batch.events.end());
  AcquisitionHistory written, read;
  EncodeEvents(first, 0, &written);  // lost
  const gmt::Events columns = EncodeEvents(second, 0, &written);
  ASSERT_TRUE(DecodeEvents(columns, 0, Returns::kAsRecorded, &read, &back).ok());
  size_t unknown = 0;
  for (size_t n = 0; n < back.events.size(); ++n) {
    const Event& event = back.events[n];
    if (event.memory != BLOCK && event.kind != FREE) continue;
    unknown += event.has(kHasTotals) ? 0u : 1u;
    if (!event.has(kHasTotals)) continue;
    EXPECT_EQ(event.total_allocated, second.events[n].total_allocated) << "event " << n;
    EXPECT_EQ(event.total_reserved, second.events[n].total_reserved) << "event " << n;
  }
  EXPECT_GT(unknown, 0u);
}

}  // namespace
}  // namespace gmt::format
