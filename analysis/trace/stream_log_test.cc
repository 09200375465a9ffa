#include "analysis/trace/stream_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using testing::Eq;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

constexpr uint64_t kFirstBlock = 0xa000, kSecondBlock = 0xb000, kPlace = 0x100000;
constexpr int64_t kBetween = EventScript::kStep_ns;

class StreamLogTest : public testing::Test {
 protected:
  const Trace& Build() { return trace_ = script_.Build(); }
  const HostCost* Cost(HostCost::Kind kind) {
    for (const HostCost& cost : trace_.host_costs) {
      if (cost.kind == kind) return &cost;
    }
    return nullptr;
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(StreamLogTest, StreamOrderedFreeIsDoneWhenItsStreamIs) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.SyncStream(kSecondBlock);
  script_.SyncStream(kFirstBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Optional(4 * kBetween));
  EXPECT_NE(trace_.rows.flags[0] & kRowFreedInOrder, 0);
}

TEST_F(StreamLogTest, UnprovenFreeIsNotKnownToBeDone) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
}

// cudaFree requires that the program has finished using the memory.
TEST_F(StreamLogTest, PoolMemoryThatIsFreedWithoutAStreamIsNotPending) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.Api(script_.FreeAsync(kPlace, 0), "cudaFree");
  script_.SyncDevice();
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
  EXPECT_EQ(trace_.rows.flags[0] & kRowFreedInOrder, 0);
}

TEST_F(StreamLogTest, BlockIsDoneWhenTheStreamItWasAllocatedForIs) {
  format::Event& block = script_.Block(kPlace, 512);
  block.present |= format::kHasStream;
  block.stream = kFirstBlock;
  script_.FreeBlock(kPlace);
  script_.Record(1, kFirstBlock);
  script_.WaitFor(1, kSecondBlock);
  script_.SyncStream(kSecondBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Optional(5 * kBetween));
}

TEST_F(StreamLogTest, FreeOfDeviceMemoryWaitsForTheDevice) {
  script_.Alloc(kPlace * 2, 512);
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.Free(kPlace * 2);
  script_.Api(script_.FreeDone(kPlace * 2, 0), "cudaFree");
  EXPECT_THAT(Build().rows.DoneAt(1), Optional(5 * kBetween));
}

TEST_F(StreamLogTest, RefusedAndRepeatedFreeIsDoneAfterTheSecond) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.SyncStream(kFirstBlock);  // for the first
  format::Event& refused = script_.FreeDone(kPlace, 1);
  refused.memory = POOL;
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.SyncStream(kFirstBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Optional(6 * kBetween));
}

TEST_F(StreamLogTest, AfterAGapAStreamsHandleProvesNothing) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.Gap(5);
  script_.SyncStream(kFirstBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
}

TEST_F(StreamLogTest, WorkEnqueuedInAGraphIsNotTracked) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.Graph("begin_capture", kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.Graph("end_capture", kFirstBlock);
  script_.SyncStream(kFirstBlock);
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
}

TEST_F(StreamLogTest, DefaultStreamsOfDevicesAreDistinct) {
  script_.AllocAsync(kPlace, 512, 0);
  script_.FreeAsync(kPlace, 0);
  script_.SyncStream(0).device = 1;
  script_.SyncStream(0);
  EXPECT_THAT(Build().rows.DoneAt(0), Optional(4 * kBetween));
}

TEST_F(StreamLogTest, SynchronisationWithoutDeviceProvesNothingWithTwoDevices) {
  script_.AllocAsync(kPlace, 512, 0);
  script_.FreeAsync(kPlace, 0);
  script_.SyncStream(0).device = 1;
  script_.SyncDevice().present &= ~uint64_t{format::kHasDevice};
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
}

TEST_F(StreamLogTest, ContextThatACallNamesIsKnownByItsCreation) {
  format::Event& made = script_.Reset(3);
  made.kind = CONTEXT_CREATE;
  made.present |= format::kHasObject;
  made.object = 0xc0;
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  format::Event& free = script_.FreeAsync(kPlace, kFirstBlock);
  free.present |= format::kHasContext;
  free.context = 3;
  const auto sync = [&](uint64_t context) {
    format::Event& event = script_.SyncDevice();
    event.present = (event.present & ~uint64_t{format::kHasDevice}) | format::kHasObject;
    event.object = context;
  };
  sync(0xdd);
  sync(0xc0);
  EXPECT_THAT(Build().rows.DoneAt(0), Optional(5 * kBetween));
}

TEST_F(StreamLogTest, QueryOfAnEventThatWasDestroyedProvesNothing) {
  script_.AllocAsync(kPlace, 512, kFirstBlock);
  script_.FreeAsync(kPlace, kFirstBlock);
  script_.Record(1, kFirstBlock);
  format::Event& gone = script_.Record(1, 0);
  gone.present &= ~uint64_t{format::kHasStream};
  gone.action = script_.builder().InternString("destroy");
  format::Event& done = script_.EventDone(1);
  done.flags = 0;
  EXPECT_THAT(Build().rows.DoneAt(0), Eq(std::nullopt));
}

// ---- Streams

TEST_F(StreamLogTest, StreamHasNamePriorityAndLife) {
  script_.NewStream(kFirstBlock, true, -1);
  script_.NameStream(kFirstBlock, "copy");
  script_.Record(1, kFirstBlock);
  script_.EndStream(kFirstBlock);
  script_.NewStream(kFirstBlock);
  ASSERT_THAT(Build().streams, SizeIs(2));
  const StreamInfo& first = trace_.streams[0];
  EXPECT_THAT(first.priority, Optional(-1));
  EXPECT_THAT(first.blocking, Optional(true));
  EXPECT_EQ(script_.definitions().string(first.name), "copy");
  EXPECT_EQ(first.records, 1u);
  EXPECT_TRUE(first.ExistedAt(2 * kBetween));
  EXPECT_FALSE(first.ExistedAt(4 * kBetween));
  EXPECT_THAT(trace_.streams[1].blocking, Optional(false));
  EXPECT_EQ(trace_.streams[1].name, 0u);
}

// ---- Host time

TEST_F(StreamLogTest, SynchronisationsOfOnePlaceAreOneCost) {
  script_.Took(script_.SyncStream(kFirstBlock, {"step"}), 300);
  script_.Took(script_.SyncStream(kSecondBlock, {"step"}), 500);
  Build();
  ASSERT_THAT(trace_.host_costs, SizeIs(1));
  EXPECT_EQ(trace_.host_costs[0].calls, 2u);
  EXPECT_EQ(trace_.host_costs[0].total_ns, 800u);
  EXPECT_EQ(trace_.host_costs[0].longest_ns, 500u);
}

TEST_F(StreamLogTest, SynchronisationInsideACallIsThatCallsCost) {
  format::Event& inner = script_.Took(script_.SyncDevice(), 400);  // ends at 1 ms
  inner.flags = format::kInsideCall;
  inner.present |= format::kHasFlags;
  format::Event& call = script_.Took(script_.Alloc(kPlace, 512), 2 * kBetween);  // since 0 ms
  script_.Api(call, "cudaMalloc");
  Build();
  EXPECT_EQ(Cost(HostCost::kSync), nullptr);
  ASSERT_NE(Cost(HostCost::kAllocation), nullptr);
  EXPECT_EQ(Cost(HostCost::kAllocation)->syncs, 1u);
  EXPECT_EQ(Cost(HostCost::kAllocation)->sync_ns, 400u);
}

TEST_F(StreamLogTest, SynchronisationInsideAnEarlierCallIsNotTheNextOnes) {
  format::Event& inner = script_.Took(script_.SyncDevice(), 400);
  inner.flags = format::kInsideCall;
  inner.present |= format::kHasFlags;
  script_.Took(script_.Alloc(kPlace, 512), 100);
  Build();
  ASSERT_NE(Cost(HostCost::kAllocation), nullptr);
  EXPECT_EQ(Cost(HostCost::kAllocation)->syncs, 0u);
}

// ---- Contexts

TEST(ContextKeysTest, AllCallsBelongToTheOnlyContext) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(std::nullopt, std::nullopt), 1u);
  EXPECT_EQ(keys.KeyOf(7, 0), 1u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 0), 1u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, std::nullopt), 1u);
}

TEST(ContextKeysTest, WithTwoContextsACallWithoutContextIsUnknown) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(1, 0), 1u);
  EXPECT_EQ(keys.KeyOf(2, 1), 2u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 1), 2u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, std::nullopt), ContextKeys::kUnknown);
}

TEST(ContextKeysTest, TwoContextsOfOneDeviceAreNotDistinguishedByTheDevice) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(1, 0), 1u);
  EXPECT_EQ(keys.KeyOf(2, 0), 2u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 0), ContextKeys::kUnknown);
}

TEST(ContextKeysTest, DeviceIsNoLongerEnoughOnceItHasASecondContext) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(1, 0), 1u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 0), 1u);
  EXPECT_EQ(keys.KeyOf(2, 0), 2u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 0), ContextKeys::kUnknown);
}

TEST(ContextKeysTest, ContextOfAKnownDeviceGetsItsKey) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(std::nullopt, 3), 1u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 4), 2u);
  EXPECT_EQ(keys.KeyOf(9, 4), 2u);
}

TEST(ContextKeysTest, ContextWithUnknownDeviceMayBeOnAnyDevice) {
  ContextKeys keys;
  EXPECT_EQ(keys.KeyOf(9, std::nullopt), 1u);
  EXPECT_EQ(keys.KeyOf(std::nullopt, 0), ContextKeys::kUnknown);
}

}  // namespace
}  // namespace gmt::analysis
