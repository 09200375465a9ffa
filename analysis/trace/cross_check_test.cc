#include "analysis/trace/cross_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

constexpr uint64_t kA = 0x100000, kB = 0x200000;
constexpr int64_t kStep = EventScript::kStep_ns;

class CrossCheckTest : public testing::Test {
 protected:
  // CUPTI's report of an allocation or a free at that time; it arrives now.
  format::Event& Witness(const std::string& action, uint64_t address, uint64_t size, int64_t t_ns) {
    format::Event& event = script_.Witness(action, address, size);
    event.t_ns = t_ns;
    return event;
  }
  CrossCheckResult Result() { return script_.Build().cross_check; }

  EventScript script_;
};

TEST_F(CrossCheckTest, WithoutCuptiThereIsNoResult) {
  script_.Alloc(kA, 512);
  EXPECT_FALSE(Result().was_made);
}

TEST_F(CrossCheckTest, OperationsSeenByBothMatchEvenIfCuptiReportsLate) {
  script_.Alloc(kA, 512);  // at 1 ms
  script_.Free(kA);
  script_.Alloc(kA, 1024);
  Witness("alloc", kA, 512, kStep);
  Witness("free", kA, 0, 2 * kStep);
  Witness("alloc", kA, 1024, 3 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.allocations, 2u);
  EXPECT_EQ(result.frees, 1u);
  EXPECT_EQ(result.only_cupti + result.only_ours, 0u);
  EXPECT_EQ(result.sizes_differ, 0u);
  EXPECT_THAT(result.first, IsEmpty());
}

TEST_F(CrossCheckTest, OperationsThatOnlyCuptiSawAreListed) {
  script_.Alloc(kA, 512);
  Witness("alloc", kA, 512, kStep);
  Witness("alloc", kB, 4096, kStep + 500);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.only_cupti, 1u);
  ASSERT_THAT(result.first, SizeIs(1));
  EXPECT_EQ(result.first[0].side, Unmatched::kOnlyCupti);
  EXPECT_EQ(result.first[0].address, kB);
  EXPECT_THAT(result.first[0].size, Optional(4096u));
  EXPECT_EQ(result.first[0].t_ns, kStep + 500);
  EXPECT_EQ(result.first[0].memory, DEVICE);
}

TEST_F(CrossCheckTest, OperationsThatOnlyWeSawAreListedWithTheirStack) {
  script_.Alloc(kA, 512);
  script_.Alloc(kB, 4096, {"load"});
  script_.Alloc(kA + 512, 512);
  Witness("alloc", kA, 512, kStep);
  Witness("alloc", kA + 512, 512, 3 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.only_ours, 1u);
  ASSERT_THAT(result.first, SizeIs(1));
  EXPECT_EQ(result.first[0].side, Unmatched::kOnlyOurs);
  EXPECT_EQ(result.first[0].address, kB);
  EXPECT_NE(result.first[0].stack, 0u);
}

TEST_F(CrossCheckTest, SameAddressAtAnotherTimeIsAnotherAllocation) {
  script_.Alloc(kA, 512);
  Witness("alloc", kA, 512, 100 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.matched(), 0u);
  EXPECT_EQ(result.only_cupti, 1u);
}

TEST_F(CrossCheckTest, AnyTimeWithinALongCallMatches) {
  script_.Alloc(kB, 512);
  script_.Took(script_.Alloc(kA, 512), 50 * kStep);  // from -48 ms to 2 ms
  Witness("alloc", kA, 512, -40 * kStep);
  EXPECT_EQ(Result().allocations, 1u);
}

TEST_F(CrossCheckTest, LongFreeEndsWithItsCall) {
  script_.Alloc(kA, 512);
  script_.Free(kA);
  for (int i = 0; i < 20; ++i) script_.Mark("other", 0);
  script_.FreeDone(kA, 0);
  Witness("alloc", kA, 512, kStep);
  Witness("free", kA, 0, 15 * kStep);
  EXPECT_EQ(Result().frees, 1u);
}

TEST_F(CrossCheckTest, RefusedFreeDoesNotCount) {
  script_.Alloc(kA, 512);
  script_.Free(kA);
  script_.FreeDone(kA, 1);
  Witness("alloc", kA, 512, kStep);
  Witness("alloc", kB, 512, 9 * kStep);
  EXPECT_EQ(Result().only_ours, 0u);
}

TEST_F(CrossCheckTest, SizesThatDifferAreCounted) {
  script_.Alloc(kA, 512);
  Witness("alloc", kA, 1024, kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.allocations, 1u);
  EXPECT_EQ(result.sizes_differ, 1u);
}

TEST_F(CrossCheckTest, KindsThatCuptiDoesNotRecordAreNotMissed) {
  script_.Create(0x77, 4096);
  script_.Map(kB, 4096, 0x77);
  script_.Alloc(kA, 512);
  Witness("alloc", kA, 512, 3 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.not_covered, 2u);
  EXPECT_EQ(result.only_ours, 0u);
}

TEST_F(CrossCheckTest, MappingThatCuptiReportsIsSeenByBoth) {
  script_.Map(kB, 4096, 0x77);
  Witness("alloc", kB, 4096, kStep);
  script_.Unmap(kB, 4096);
  Witness("free", kB, 4096, 2 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.allocations, 1u);
  EXPECT_EQ(result.frees, 1u);
  EXPECT_EQ(result.only_cupti + result.not_covered, 0u);
}

TEST_F(CrossCheckTest, MemoryOfTheDriversPoolsIsNotMissed) {
  Witness("alloc", 0, 32 << 20, kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.not_comparable, 1u);
  EXPECT_EQ(result.only_cupti, 0u);
}

TEST_F(CrossCheckTest, BlocksOfAFrameworkAreIgnored) {
  script_.Alloc(kA, 4096);
  script_.Block(kA, 512);
  Witness("alloc", kA, 4096, kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.allocations, 1u);
  EXPECT_EQ(result.not_covered + result.only_ours + result.behind_the_last, 0u);
}

TEST_F(CrossCheckTest, OperationsWhileCuptiWasOffAreNotMissed) {
  script_.Alloc(kB, 512);              // 1: before
  script_.Source("cupti", "on: all");  // 2
  script_.Alloc(kA, 512);              // 3
  script_.Source("cupti", "off: taken by libtorch_cpu.so");
  script_.Alloc(kB + 4096, 512);  // 5
  script_.Source("cupti", "on: all");
  script_.Alloc(kA + 4096, 512);  // 7
  Witness("alloc", kA, 512, 3 * kStep);
  Witness("alloc", kA + 4096, 512, 7 * kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.allocations, 2u);
  EXPECT_EQ(result.while_off, 2u);
  EXPECT_EQ(result.only_ours, 0u);
}

TEST_F(CrossCheckTest, LastRecordsOfCuptiMayBeMissing) {
  script_.Alloc(kA, 512);
  Witness("alloc", kA, 512, kStep);
  script_.Alloc(kB, 512);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.behind_the_last, 1u);
  EXPECT_EQ(result.only_ours, 0u);
}

TEST_F(CrossCheckTest, PoolsAreCountedAndNotMatched) {
  Witness("pool_create", kA, 0, kStep);
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.pool_events, 1u);
  EXPECT_EQ(result.only_cupti, 0u);
}

TEST_F(CrossCheckTest, ArraysAndVariablesOfModulesAreNotOurCalls) {
  Witness("alloc", kA, 512, kStep).memory = ARRAY;
  Witness("alloc", kB, 512, kStep).memory = MEMORY_UNSPECIFIED;
  const CrossCheckResult result = Result();
  EXPECT_EQ(result.not_comparable, 2u);
  EXPECT_EQ(result.only_cupti, 0u);
}

TEST_F(CrossCheckTest, HeapThatTheRecordingLeavesOutIsNotMissed) {
  CrossCheck check(script_.definitions());
  format::Event pinned = script_.Witness("alloc", kA, 512);
  pinned.memory = PINNED;
  const format::Event device = script_.Witness("alloc", kB, 512);
  static_cast<void>(script_.definitions());  // definitions of both
  Facts facts;
  Setting& heap = *facts.add_options();
  heap.set_name("heap");
  heap.set_value("pytorch+host");
  check.OnFacts(facts);
  check.OnEvent(pinned);
  check.OnEvent(device);
  const CrossCheckResult result = std::move(check).Result();
  EXPECT_EQ(result.only_cupti, 1u);
  EXPECT_EQ(result.not_recorded, 1u);
}

TEST_F(CrossCheckTest, WitnessDoesNotChangeLiveMemory) {
  Witness("alloc", kA, 512, kStep);
  EXPECT_EQ(script_.Build().rows.count(), 0u);
}

TEST_F(CrossCheckTest, TooManyWaitingOperationsAreDroppedAndCounted) {
  format::Event alloc = script_.Alloc(kA, 512);
  const format::Event witness = script_.Witness("alloc", kB, 1);
  CrossCheck check(script_.definitions());
  for (uint64_t i = 0; i <= CrossCheck::kMaxWaiting; ++i) {
    alloc.address = kA + i * 512;
    check.OnEvent(alloc);
  }
  check.OnEvent(witness);
  EXPECT_EQ(std::move(check).Result().given_up, CrossCheck::kMaxWaiting);
}

}  // namespace
}  // namespace gmt::analysis
