#include "analysis/report/all_time.h"

#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/live_columns.h"

namespace gmt::analysis {
namespace {

// A part that begins with 64 bytes held, after a peak of 900.
class AllTimeTest : public ::testing::Test {
 protected:
  AllTimeTest() {
    format::Event& held = script_.Alloc(0x100, 64, {"load", "main"});
    held.t_ns = -5000;
    held.present |= format::kHasTime;
    const format::Event row = held;
    script_.events().clear();  // dropped with the earlier parts
    part_.set_reason("part");
    part_.set_name("part-3");
    part_.set_t_ns(1000);
    part_.set_exact(true);
    *part_.mutable_live() = format::EncodeLive({row});
    sums_.set_t_ns(1000);
    sums_.set_events(70);
    HeapCounts* heap = sums_.add_heaps();
    heap->set_heap("driver");
    heap->set_device(0);
    heap->set_live_bytes(64);
    heap->set_allocations(40);
    heap->set_frees(39);
    heap->set_peak_bytes(900);
    heap->set_peak_t_ns(500);
    Sites* sites = sums_.mutable_sites();
    sites->set_count(2);
    for (uint64_t bytes : {100u, 800u}) {
      sites->add_stack(bytes == 800 ? row.stack : 0);
      sites->add_allocations(bytes);
      sites->add_bytes_at_peak(bytes);
      sites->add_count_at_peak(1);
    }
  }

  // Builds the part that contains events.
  Trace Build() {
    TraceBuilder builder(script_.definitions());
    EXPECT_TRUE(builder.OnAggregates(sums_).ok());
    EXPECT_TRUE(builder.OnSnapshot(part_).ok());
    EXPECT_TRUE(builder.OnEvents(script_.batch()).ok());
    sums_.set_events(100);  // those of the next part
    EXPECT_TRUE(builder.OnAggregates(sums_).ok());
    EXPECT_TRUE(builder.OnSnapshot(part_).ok());
    return std::move(builder).Build();
  }

  EventScript script_;
  Snapshot part_;
  Aggregates sums_;
};

TEST_F(AllTimeTest, MemoryHeldWhenThePartBeginsHasItsBirthAndStack) {
  script_.Free(0x100);
  const Trace trace = Build();
  ASSERT_EQ(trace.rows.count(), 1u);
  EXPECT_EQ(trace.rows.BornBefore(0), -5000);
  EXPECT_NE(trace.rows.stack[0], 0u);
  EXPECT_EQ(trace.rows.birth[0], 0u);
  EXPECT_EQ(trace.rows.death[0], 1u) << "a later part's snapshot does not bring it back";
  EXPECT_EQ(trace.unknowns.rows_from_before, 0u) << "all of it is known";
  EXPECT_TRUE(trace.snapshots.empty()) << "the beginning of a part is not a snapshot";
}

TEST_F(AllTimeTest, SumsAreThoseBeforePlusTheKeptEvents) {
  script_.Alloc(0x200, 100);
  script_.Free(0x100);
  const Trace trace = Build();
  const Examination examination(trace, script_.definitions());
  const auto all = FindAllTime(examination);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->details_from_t_ns, 1000);
  EXPECT_EQ(all->events_before, 70u);
  ASSERT_EQ(all->heaps.size(), 1u);
  const AllTimeHeap& heap = all->heaps[0];
  EXPECT_EQ(heap.allocations, 41u);
  EXPECT_EQ(heap.frees, 40u);
  EXPECT_EQ(heap.peak_bytes, 900u);
  EXPECT_EQ(heap.peak_t_ns, 500);
  EXPECT_TRUE(heap.peak_is_before);
  ASSERT_EQ(heap.rows.size(), 2u);
  EXPECT_EQ(heap.rows[0].bytes_at_peak, 800u);
  EXPECT_EQ(heap.rows[0].frames.at(0).function, "load");
  EXPECT_EQ(heap.rows[0].bytes_at_peak + heap.rows[1].bytes_at_peak, heap.peak_bytes);
}

TEST_F(AllTimeTest, HigherPeakOfTheKeptEventsIsUsed) {
  script_.Alloc(0x200, 1000);
  const Trace trace = Build();
  const Examination examination(trace, script_.definitions());
  const auto all = FindAllTime(examination);
  EXPECT_EQ(all->heaps[0].peak_bytes, 1064u);
  EXPECT_FALSE(all->heaps[0].peak_is_before);
  EXPECT_TRUE(all->heaps[0].rows.empty());
}

TEST_F(AllTimeTest, RecordingWithAllItsEventsHasNoSums) {
  script_.Alloc(0x100, 64);
  const Trace trace = script_.Build();
  EXPECT_FALSE(FindAllTime(Examination(trace, script_.definitions())).has_value());
}

TEST_F(AllTimeTest, HostileSumsAreBounded) {
  sums_.mutable_sites()->set_count(UINT32_MAX);
  sums_.mutable_sites()->add_heap(7);
  const Trace trace = Build();
  EXPECT_LE(FindAllTime(Examination(trace, script_.definitions()))->heaps[0].rows.size(), 2u);
}

}  // namespace
}  // namespace gmt::analysis
