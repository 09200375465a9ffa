#include "analysis/examination/allocator_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = EventScript::kStep_ns;

class AllocatorActionsTest : public ::testing::Test {
 protected:
  // Creates two segments whose blocks are freed: the cache holds 22 MiB.
  void FillCache() {
    Segment(0x1000000, 20 * kMiB);
    Segment(0x4000000, 2 * kMiB);
    script_.FreeBlock(0x1000000);
    script_.FreeBlock(0x4000000);
  }
  void Segment(uint64_t address, uint64_t size) {
    script_.Alloc(address, size, {"malloc", "train"});
    script_.Block(address, 512, {"train"});
  }
  void Release(uint64_t address, const EventScript::Functions& stack = {}) {
    script_.Free(address).stack = script_.Stack(stack);
    script_.FreeDone(address, 0).duration_ns = 1000;
  }
  void FailedMalloc(uint64_t size) {
    format::Event& failed = script_.Failed(size, {"malloc", "train"});
    failed.duration_ns = 300;
  }
  std::vector<AllocatorAction> Find(const std::vector<NamedText>& settings = {}) {
    Trace trace = script_.Build();
    trace.settings = settings;
    return FindAllocatorActions(trace, script_.definitions());
  }
  static std::vector<NamedText> Conf(const char* value) {
    return {{"PYTORCH_CUDA_ALLOC_CONF", value}};
  }
  static std::vector<AllocatorAction::Kind> Kinds(const std::vector<AllocatorAction>& actions) {
    std::vector<AllocatorAction::Kind> kinds;
    for (const AllocatorAction& action : actions) kinds.push_back(action.kind);
    return kinds;
  }

  EventScript script_;
};

TEST_F(AllocatorActionsTest, MallocsAndReusesAreNotActions) {
  FillCache();
  script_.Block(0x1000000, 512);
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(AllocatorActionsTest, FailureReleasesAndMallocAreOneRetryWithTotalCost) {
  FillCache();                    // 1..6
  FailedMalloc(64 * kMiB);        // 7
  Release(0x1000000);             // 8, 9
  Release(0x4000000);             // 10, 11
  Segment(0x8000000, 64 * kMiB);  // 12, 13
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kRetry));
  EXPECT_EQ(actions[0].t_ns, 7 * kMs - 300);
  EXPECT_EQ(actions[0].duration_ns, static_cast<uint64_t>(5 * kMs + 300));
  EXPECT_EQ(actions[0].requested_bytes, 64 * kMiB);
  EXPECT_EQ(actions[0].released_bytes, 22 * kMiB);
  EXPECT_EQ(actions[0].releases, 2u);
  EXPECT_TRUE(actions[0].succeeded);
  EXPECT_FALSE(actions[0].under_limit);
}

TEST_F(AllocatorActionsTest, RetryThatFailsAgainEndsInAnOom) {
  FillCache();
  FailedMalloc(64 * kMiB);
  Release(0x1000000);
  FailedMalloc(64 * kMiB);
  script_.FailedBlock(63 * kMiB, {"train"});
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kRetry, AllocatorAction::kOom));
  EXPECT_FALSE(actions[0].succeeded);
  EXPECT_EQ(actions[1].requested_bytes, 63 * kMiB);
  EXPECT_EQ(actions[1].released_bytes, 20 * kMiB);
  EXPECT_NE(actions[1].stack, 0u);
}

TEST_F(AllocatorActionsTest, EachOfTwoOomsInARowHasItsOwnRetry) {
  FillCache();
  for (int i = 0; i < 2; ++i) {
    FailedMalloc(64 * kMiB);
    FailedMalloc(64 * kMiB);
    script_.FailedBlock(64 * kMiB);
  }
  EXPECT_THAT(Kinds(Find()), ElementsAre(AllocatorAction::kRetry, AllocatorAction::kOom,
                                         AllocatorAction::kRetry, AllocatorAction::kOom));
}

TEST_F(AllocatorActionsTest, FailureWithoutASecondAttemptIsACaptureNotARetry) {
  FillCache();
  FailedMalloc(64 * kMiB);
  script_.FailedBlock(64 * kMiB);
  EXPECT_THAT(Kinds(Find()), ElementsAre(AllocatorAction::kOom));
}

TEST_F(AllocatorActionsTest, OomUnderALimitWasRetriedWithoutTheDriver) {
  FillCache();
  script_.FailedBlock(64 * kMiB, {"train"});
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kRetry, AllocatorAction::kOom));
  EXPECT_TRUE(actions[0].under_limit);
  EXPECT_FALSE(actions[0].succeeded);
}

TEST_F(AllocatorActionsTest, OomUnderALimitThatReleasedTheCacheIsOneRetry) {
  FillCache();
  Release(0x1000000, {"malloc", "train"});
  script_.FailedBlock(64 * kMiB, {"train"});
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kRetry, AllocatorAction::kOom));
  EXPECT_EQ(actions[0].released_bytes, 20 * kMiB);
  EXPECT_FALSE(actions[0].succeeded);
}

TEST_F(AllocatorActionsTest, FailureOfAnotherThreadsLibraryIsNotARetry) {
  FillCache();
  script_.Failed(64 * kMiB, {"ncclCommInit"}).thread = 9;
  Segment(0x8000000, 64 * kMiB);
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(AllocatorActionsTest, ReleasesOutsideAMallocAreAnEmptiedCache) {
  FillCache();
  Release(0x1000000);
  Release(0x4000000);
  script_.Block(0x9000000, 512);
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kEmptyCache));
  EXPECT_EQ(actions[0].released_bytes, 22 * kMiB);
  EXPECT_EQ(actions[0].duration_ns, static_cast<uint64_t>(2 * kMs + 1000));
}

TEST_F(AllocatorActionsTest, StackIdentifiesAnEmptiedCacheBeforeAMalloc) {
  FillCache();
  Release(0x1000000, {"THCPModule_emptyCache(_object*, _object*)", "evaluate"});
  Segment(0x8000000, 64 * kMiB);
  EXPECT_THAT(Kinds(Find()), ElementsAre(AllocatorAction::kEmptyCache));
}

TEST_F(AllocatorActionsTest, ReleasesBeforeAMallocAreAGarbageCollectionIfEnabled) {
  FillCache();
  Release(0x1000000, {"malloc", "train"});
  Segment(0x8000000, 64 * kMiB);
  const auto actions = Find(Conf("garbage_collection_threshold:0.6"));
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kGarbageCollection));
  EXPECT_EQ(actions[0].released_bytes, 20 * kMiB);
  EXPECT_EQ(actions[0].requested_bytes, 64 * kMiB);
}

TEST_F(AllocatorActionsTest, ThresholdOfZeroCollectsNothing) {
  FillCache();
  Release(0x1000000, {"malloc", "train"});
  Segment(0x8000000, 64 * kMiB);
  EXPECT_THAT(Kinds(Find(Conf("garbage_collection_threshold:0.0"))),
              ElementsAre(AllocatorAction::kRetry));
}

TEST_F(AllocatorActionsTest, ReleasesBeforeAMallocAreARetryUnderALimitIfCollectionIsDisabled) {
  FillCache();
  Release(0x1000000, {"malloc", "train"});
  Segment(0x8000000, 64 * kMiB);
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kRetry));
  EXPECT_TRUE(actions[0].under_limit);
  EXPECT_TRUE(actions[0].succeeded);
}

TEST_F(AllocatorActionsTest, ReleasesWithoutAStackBeforeAMallocAreUndetermined) {
  FillCache();
  Release(0x1000000);
  Segment(0x8000000, 64 * kMiB);
  EXPECT_THAT(Kinds(Find()), ElementsAre(AllocatorAction::kRelease));
}

TEST_F(AllocatorActionsTest, TwoEmptiedCachesWithABlockEventBetweenAreTwo) {
  FillCache();
  script_.Block(0x4000000, 512);
  Release(0x1000000);
  script_.FreeBlock(0x4000000);
  Release(0x4000000);
  EXPECT_THAT(Find(), SizeIs(2));
}

TEST_F(AllocatorActionsTest, FreesOfDriverMemoryWithoutBlocksAreNotTheAllocators) {
  FillCache();
  script_.Alloc(0x20000000, 64 * kMiB, {"cublasCreate"});
  script_.Free(0x20000000);
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(AllocatorActionsTest, PagesOfAnExpandableSegmentAreReleasedOnce) {
  constexpr uint64_t kAt = uint64_t{1} << 40;
  script_.Reserve(kAt, uint64_t{1} << 36);
  script_.Create(1, 20 * kMiB);
  script_.Map(kAt, 20 * kMiB, 1);
  script_.Block(kAt, 4 * kMiB);
  script_.FreeBlock(kAt);
  script_.Unmap(kAt, 20 * kMiB);
  script_.Release(1);
  const auto actions = Find();
  ASSERT_THAT(Kinds(actions), ElementsAre(AllocatorAction::kEmptyCache));
  EXPECT_EQ(actions[0].released_bytes, 20 * kMiB);
  EXPECT_EQ(actions[0].releases, 1u);
}

TEST_F(AllocatorActionsTest, DevicesAreSeparate) {
  FillCache();
  FailedMalloc(64 * kMiB);
  script_.Block(0x90000000, 512).device = 1;  // another device's lock
  Release(0x1000000);
  Segment(0x8000000, 64 * kMiB);
  EXPECT_THAT(Kinds(Find()), ElementsAre(AllocatorAction::kRetry));
}

}  // namespace
}  // namespace gmt::analysis
