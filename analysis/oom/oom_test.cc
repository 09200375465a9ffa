#include "analysis/oom/oom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/examination/failures.h"
#include "analysis/oom/evidence.h"
#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kTotal = 1024 * kMiB;
constexpr uint64_t kA = 0x10000000, kB = 0x80000000, kC = 0xf0000000;

class OomTest : public ::testing::Test {
 protected:
  OomTest() { script_.pid = 12; }

  OomReport Report(const LeakReport& leaks = {}) {
    trace_ = script_.Build();
    const Examination examination(trace_, script_.definitions());
    return ExplainOom(examination, Categorize(examination), leaks);
  }
  Failures FailuresOf() {
    trace_ = script_.Build();
    return FindFailures(Examination(trace_, script_.definitions()));
  }
  // The driver's answer that PyTorch requests, then its failure.
  void GiveUp(uint64_t bytes, uint64_t driver_free) {
    DriverSays(driver_free);
    script_.FailedBlock(bytes, {"request", "main"});
  }
  void DriverSays(uint64_t driver_free) {
    gmt::Sample& sample = script_.Sample(kTotal - driver_free, kTotal);
    sample.set_source("cudaMemGetInfo");
    sample.set_free_bytes(driver_free);
  }
  // One backward pass, which gives a parameter of 100 MiB its gradient.
  void TrainOnce() {
    script_.Block(kA, 100 * kMiB, {"make", "main"});
    script_.Role(kA, format::kRoleParameter | format::kRoleExpectsGradient);
    script_.Begin("backward", 1);
    script_.Block(kA + 100 * kMiB, 100 * kMiB, {"backward", "main"});
    script_.Role(kA + 100 * kMiB, format::kRoleGradient);
    script_.End("backward", 1);
  }
  void Segment(uint64_t address, uint64_t bytes) { script_.Alloc(address, bytes, {"malloc"}); }

  EventScript script_;
  Trace trace_;
};

TEST_F(OomTest, WithoutAFailureThereIsNoVerdict) {
  Segment(kA, 20 * kMiB);
  script_.Block(kA, 4 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kNone);
  EXPECT_EQ(report.confidence, Confidence::kHigh);
  EXPECT_THAT(report.actions, IsEmpty());
}

TEST_F(OomTest, NothingIsKnownWithoutRequests) {
  EXPECT_EQ(Report().verdict, OomVerdict::kUnknown);
  script_.Free(kA, 20 * kMiB);  // held before the recording
  EXPECT_EQ(Report().verdict, OomVerdict::kUnknown);
  Segment(kB, 20 * kMiB);
  EXPECT_EQ(Report().verdict, OomVerdict::kNone);
}

TEST_F(OomTest, FailureMayBeAmongMissingEvents) {
  Segment(kA, 20 * kMiB);
  script_.Gap(5);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kNone);
  EXPECT_EQ(report.confidence, Confidence::kLow);
  EXPECT_THAT(report.findings, Contains(HasSubstr("events are missing")));
}

TEST_F(OomTest, RefusalRecoveredByReleasingIsARetryNotAFailure) {
  Segment(kA, 512 * kMiB);
  script_.Block(kA, 512 * kMiB);
  script_.FreeBlock(kA);
  script_.Failed(700 * kMiB).result = 2;
  script_.Free(kA);
  Segment(kB, 700 * kMiB);
  script_.Block(kB, 700 * kMiB);
  const Failures failures = FailuresOf();
  EXPECT_EQ(failures.count, 0u);
  EXPECT_EQ(failures.recovered, 1u);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kNone);
  EXPECT_EQ(report.evidence.retries, 1u);
}

TEST_F(OomTest, RefusalsOfTheDriverAndOfTheFrameworkAreOneFailure) {
  Segment(kA, 900 * kMiB);
  script_.Block(kA, 900 * kMiB);
  script_.Failed(200 * kMiB).result = 2;
  script_.Failed(200 * kMiB).result = 2;
  GiveUp(200 * kMiB, 124 * kMiB);
  const Failures failures = FailuresOf();
  EXPECT_EQ(failures.count, 1u);
  ASSERT_TRUE(failures.decisive);
  EXPECT_EQ(trace_.failed[*failures.decisive].heap, 2u);
  EXPECT_TRUE(failures.was_fatal);
}

TEST_F(OomTest, RefusalFollowedBySuccessIsRecovered) {
  script_.Failed(300 * kMiB).result = 2;
  script_.Alloc(kA, 300 * kMiB);
  EXPECT_EQ(FailuresOf().recovered, 1u);
}

TEST_F(OomTest, PinnedHostMemoryIsOnNoDevice) {
  format::Event& failed = script_.Failed(300 * kMiB);
  failed.memory = PINNED;
  failed.result = 2;
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kNone);
  EXPECT_EQ(report.host_failures, 1u);
}

TEST_F(OomTest, FailureOfAProgramThatContinuesIsNotFatal) {
  for (uint64_t i = 0; i < 40; ++i) script_.Alloc(kA + i * 2 * kMiB, kMiB);
  script_.Failed(2 * kTotal).result = 2;
  for (uint64_t i = 0; i < 40; ++i) script_.Alloc(kB + i * 2 * kMiB, kMiB);
  EXPECT_FALSE(FailuresOf().was_fatal);
}

TEST_F(OomTest, LiveMemoryThatNeedsTheDeviceIsCapacityAndEmptyCacheWouldNotHelp) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  script_.Block(kA, 900 * kMiB);
  script_.Failed(200 * kMiB).result = 2;
  script_.Failed(200 * kMiB).result = 2;
  GiveUp(200 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kCapacity);
  EXPECT_EQ(report.confidence, Confidence::kHigh);
  EXPECT_EQ(report.requested_bytes, 200 * kMiB);
  EXPECT_EQ(report.evidence.live_bytes, 900 * kMiB);
  EXPECT_EQ(report.evidence.driver_free_bytes, 124 * kMiB);
  EXPECT_THAT(report.not_helpful, Contains(Field(&OomAction::what, "empty_cache()")));
  EXPECT_THAT(report.holders, SizeIs(1));
}

TEST_F(OomTest, HolesThatTogetherWouldSufficeAreFragmentation) {
  DriverSays(kTotal);
  for (uint64_t i = 0; i < 8; ++i) {
    Segment(kA + i * 200 * kMiB, 120 * kMiB);
    script_.Block(kA + i * 200 * kMiB + 60 * kMiB, 2 * kMiB, {"metric"});
  }
  script_.Failed(150 * kMiB).result = 2;
  script_.Failed(150 * kMiB).result = 2;
  GiveUp(150 * kMiB, 64 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kFragmentation);
  EXPECT_EQ(report.evidence.split.pinned, 8 * 118 * kMiB);
  EXPECT_EQ(report.evidence.largest_free_bytes, 60 * kMiB);
  EXPECT_THAT(report.pins, SizeIs(8));
  ASSERT_FALSE(report.actions.empty());
  EXPECT_THAT(report.actions[0].what, HasSubstr("expandable_segments:True"));
  EXPECT_EQ(report.actions[0].suffices, Suffices::kYes);
}

TEST_F(OomTest, SmallRequestOnAFullDeviceIsNotFragmentation) {
  DriverSays(kTotal);
  Segment(kA, 1020 * kMiB);
  script_.Block(kA, 1010 * kMiB);  // 10 MiB are free, in one piece
  script_.Failed(20 * kMiB).result = 2;
  script_.Failed(20 * kMiB).result = 2;
  GiveUp(11 * kMiB, 4 * kMiB);
  EXPECT_EQ(Report().verdict, OomVerdict::kCapacity);
}

TEST_F(OomTest, MoreThanTheDeviceHasIsASingleRequest) {
  DriverSays(kTotal);
  Segment(kA, 20 * kMiB);
  script_.Block(kA, 20 * kMiB);
  script_.Failed(kTotal * 2).result = 2;
  script_.Failed(kTotal * 2).result = 2;
  GiveUp(kTotal * 2, kTotal - 20 * kMiB);
  EXPECT_EQ(Report().verdict, OomVerdict::kSingleRequest);
}

TEST_F(OomTest, FailureWithoutADriverCallIsALimit) {
  DriverSays(kTotal);
  Segment(kA, 300 * kMiB);
  script_.Block(kA, 300 * kMiB);
  GiveUp(100 * kMiB, 724 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kCap);
  EXPECT_EQ(report.evidence.limit_bytes, 300 * kMiB);
  EXPECT_FALSE(report.evidence.driver_refused);
  EXPECT_THAT(report.actions, SizeIs(1));
}

TEST_F(OomTest, UnreleasedMemoryWithoutBlocksIsInAPrivatePool) {
  DriverSays(kTotal);
  Segment(kA, 400 * kMiB);
  script_.Block(kA, 400 * kMiB);
  script_.FreeBlock(kA);
  Segment(kB, 600 * kMiB);
  script_.Block(kB, 600 * kMiB);
  script_.Failed(200 * kMiB).result = 2;
  script_.Failed(200 * kMiB).result = 2;
  GiveUp(200 * kMiB, 24 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kPrivatePool);
  EXPECT_EQ(report.evidence.split.private_pool, 400 * kMiB);
  EXPECT_EQ(report.evidence.split.releasable, 0u);
}

TEST_F(OomTest, OtherProcessesAreReportedByNvml) {
  gmt::Sample& before = script_.Sample(700 * kMiB, kTotal);
  before.set_source("nvml");
  const auto add = [](gmt::Sample& sample, uint64_t pid, uint64_t bytes) {
    auto* process = sample.add_processes();
    process->set_pid(pid);
    process->set_bytes(bytes);
  };
  add(before, 12, 0);
  add(before, 77, 700 * kMiB);
  Segment(kA, 300 * kMiB);
  script_.Block(kA, 300 * kMiB);
  script_.Failed(200 * kMiB).result = 2;
  script_.Failed(200 * kMiB).result = 2;
  GiveUp(200 * kMiB, 24 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kOtherProcess);
  EXPECT_EQ(report.confidence, Confidence::kHigh);
  EXPECT_EQ(report.evidence.other_processes_bytes, 700 * kMiB);
}

TEST_F(OomTest, LeakIsTheVerdictIfFixingItWouldSuffice) {
  DriverSays(kTotal);
  uint32_t stack = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    Segment(kA + i * 200 * kMiB, 100 * kMiB);
    stack = script_.Block(kA + i * 200 * kMiB, 100 * kMiB, {"append", "train"}).stack;
  }
  script_.Failed(100 * kMiB).result = 2;
  script_.Failed(100 * kMiB).result = 2;
  GiveUp(100 * kMiB, 24 * kMiB);
  LeakReport leaks;
  LeakSuspect suspect;
  suspect.id = "leak/1";
  suspect.tier = LeakTier::kLikely;
  suspect.bytes = 900 * kMiB;
  LeakStack leaked;
  leaked.stack = stack;
  suspect.stacks.push_back(leaked);
  leaks.suspects.push_back(suspect);
  const OomReport report = Report(leaks);
  EXPECT_EQ(report.verdict, OomVerdict::kLeak);
  EXPECT_EQ(report.leak_id, "leak/1");
  EXPECT_EQ(report.evidence.leaked_bytes, 900 * kMiB);
  for (const OomAction& action : report.actions)
    EXPECT_EQ(action.suffices == Suffices::kYes, action.what.starts_with("fix leak/1"))
        << action.what;
  leaks.suspects[0].tier = LeakTier::kPossible;
  EXPECT_EQ(Report(leaks).verdict, OomVerdict::kCapacity);
}

TEST_F(OomTest, ActionThatTheExpectedPeakAllowsIsPerhapsEnoughIfThePeakMayBeHigher) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  script_.Block(kA, 100 * kMiB, {"make", "main"});
  script_.Role(kA, format::kRoleParameter);
  script_.Block(kA + 100 * kMiB, 800 * kMiB, {"forward", "main"});
  script_.Role(kA + 100 * kMiB, format::kRoleSaved, "MulBackward0");
  script_.Begin("backward", 1);
  script_.Failed(300 * kMiB).result = 2;
  script_.Failed(300 * kMiB).result = 2;
  GiveUp(300 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kCapacity);
  EXPECT_THAT(report.actions, Contains(AllOf(Field(&OomAction::what, "half the batch size"),
                                             Field(&OomAction::suffices, Suffices::kPerhaps))));
}

TEST_F(OomTest, SecondMicroBatchOfTheFirstStepStillNeedsTheOptimizersState) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  TrainOnce();
  GiveUp(800 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  ASSERT_TRUE(report.still_to_come);
  EXPECT_EQ(report.still_to_come->optimizer_bytes, 2 * 100 * kMiB);
}

TEST_F(OomTest, FrozenParametersAreNotTrainedIfTheForwardPassFails) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  script_.Block(kA, 100 * kMiB, {"make", "main"});
  script_.Role(kA, format::kRoleParameter);
  script_.Block(kA + 100 * kMiB, 1 * kMiB, {"make_adapter", "main"});
  script_.Role(kA + 100 * kMiB, format::kRoleParameter | format::kRoleExpectsGradient);
  GiveUp(800 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  ASSERT_TRUE(report.still_to_come);
  EXPECT_FALSE(report.still_to_come->observed);
  EXPECT_NEAR(static_cast<double>(report.still_to_come->gradient_bytes), 1.0 * kMiB, 512);
}

TEST_F(OomTest, FirstOptimizerStepBelongsToTheFirstStep) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  TrainOnce();
  script_.Begin("Optimizer.step", 1);
  GiveUp(800 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.cycle, 1u);
  EXPECT_EQ(report.phase, Phase::kOptimizer);
}

TEST_F(OomTest, OptimizerThatMadeItsStateAtOnceNeedsNoMoreOfItInItsFirstStep) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  script_.Begin("Optimizer.__init__", 2).stack =
      PythonStack(script_, {{"Optimizer.__init__", "/lib/torch/optim/optimizer.py"},
                            {"Adagrad.__init__", "/lib/torch/optim/adagrad.py"},
                            {"main", "/src/train.py"}});
  script_.End("Optimizer.__init__", 2);
  TrainOnce();
  script_.Begin("Optimizer.step", 1);
  const uint32_t step = PythonStack(
      script_, {{"Adagrad.step", "/lib/torch/optim/adagrad.py"}, {"main", "/src/train.py"}});
  script_.Block(kA + 500 * kMiB, 100 * kMiB).stack = step;  // a temporary, not state
  GiveUp(200 * kMiB, 124 * kMiB);
  const OomReport report = Report();
  EXPECT_EQ(report.phase, Phase::kOptimizer);
  EXPECT_EQ(report.evidence.expected.basis, ExpectedPeak::Basis::kSoFar);
  EXPECT_EQ(report.evidence.expected.bytes, report.evidence.live_bytes + report.requested_bytes);
}

TEST_F(OomTest, WithoutTheGradientsOfThePassBeforeTheProgramUpdatesByItself) {
  DriverSays(kTotal);
  Segment(kA, 900 * kMiB);
  TrainOnce();
  script_.FreeBlock(kA + 100 * kMiB);
  GiveUp(800 * kMiB, 124 * kMiB);
  EXPECT_FALSE(Report().still_to_come);
}

TEST_F(OomTest, DriverAloneIsExplainedWithoutAFramework) {
  DriverSays(kTotal);
  script_.Alloc(kA, 900 * kMiB, {"load", "main"});
  script_.Failed(300 * kMiB, {"load", "main"}).result = 2;
  const OomReport report = Report();
  EXPECT_EQ(report.verdict, OomVerdict::kCapacity);
  EXPECT_EQ(report.evidence.live_bytes, 900 * kMiB);
  EXPECT_EQ(report.evidence.reserved_bytes, 0u);
}

TEST_F(OomTest, SquareRequestIsGuessed) {
  DriverSays(kTotal);
  script_.Alloc(kA, 900 * kMiB);
  script_.Failed(uint64_t{8192} * 8192 * 4).result = 2;
  EXPECT_EQ(Report().square, 8192u);
}

TEST_F(OomTest, ShapeOfTheRequestDecidesWhetherItIsASquare) {
  DriverSays(kTotal);
  script_.Alloc(kA, 900 * kMiB);
  const uint64_t bytes = uint64_t{8192} * 8192 * 4;
  script_.Tensor(script_.FailedBlock(bytes), "float32", "[64, 1024, 1024]");
  EXPECT_EQ(Report().dtype, "float32");
  EXPECT_EQ(Report().shape, "[64, 1024, 1024]");
  EXPECT_EQ(Report().square, std::nullopt);
  script_.Tensor(script_.FailedBlock(bytes), "float32", "[1, 8192, 8192]");
  EXPECT_EQ(Report().square, 8192u);
}

TEST_F(OomTest, HostileNumbersDoNotOverflow) {
  DriverSays(kTotal);
  Segment(kA, UINT64_MAX / 2);
  script_.Block(kA, UINT64_MAX / 2);
  script_.Alloc(kC, UINT64_MAX - 1);
  script_.Failed(UINT64_MAX).result = 2;
  GiveUp(UINT64_MAX - 5, UINT64_MAX);
  EXPECT_NE(Report().verdict, OomVerdict::kNone);
}

TEST_F(OomTest, OptimizerIsThePhaseOfItsRange) {
  script_.Begin("Optimizer.step#Adam.step", 1);
  GiveUp(kMiB, 0);
  EXPECT_EQ(Report().phase, Phase::kOptimizer);
}

TEST_F(OomTest, ForwardPassOfAClosureIsNotAnOptimizer) {
  script_.Begin("Optimizer.step#Adam.step", 1);
  DriverSays(0);
  script_.FailedBlock(kMiB).stack =
      PythonStack(script_, {{"Net.forward", "/src/net.py"},
                            {"Module._call_impl", "/site-packages/torch/nn/modules/module.py"},
                            {"closure", "/src/train.py"}});
  EXPECT_EQ(Report().phase, Phase::kForward);
}

TEST(EvidenceTest, SegmentSizesMatchPyTorchsRequests) {
  EXPECT_EQ(SegmentBytesFor(512), 2 * kMiB);
  EXPECT_EQ(SegmentBytesFor(kMiB), 2 * kMiB);
  EXPECT_EQ(SegmentBytesFor(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(SegmentBytesFor(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(SegmentBytesFor(11 * kMiB), 12 * kMiB);
}

TEST(EvidenceTest, OptionsOfTheAllocatorAreFoundInTheirText) {
  Trace trace;
  trace.settings.push_back(
      {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128"});
  EXPECT_EQ(AllocatorOption(trace, "expandable_segments"), "True");
  EXPECT_EQ(AllocatorOption(trace, "max_split_size_mb"), "128");
  EXPECT_EQ(AllocatorOption(trace, "per_process_memory_fraction"), "");
}

TEST(EvidenceTest, OptionsOfTheAllocatorAreFoundInTheJsonOfSnapshots) {
  Trace trace;
  trace.settings = {{"PYTORCH_CUDA_ALLOC_CONF", R"("expandable_segments:True")", true}};
  EXPECT_EQ(AllocatorOption(trace, "expandable_segments"), "True");
  trace.settings = {{"expandable_segments", "true", true}};
  EXPECT_EQ(AllocatorOption(trace, "expandable_segments"), "True");
}

TEST_F(OomTest, FractionOfADeviceOfUnknownSizeIsNotALimitOfZero) {
  Segment(kA, 300 * kMiB);
  script_.Block(kA, 300 * kMiB);
  script_.FailedBlock(100 * kMiB, {"request", "main"});
  trace_ = script_.Build();
  trace_.settings = {{"PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.5"}};
  const Examination examination(trace_, script_.definitions());
  const OomEvidence evidence = FactsOf(examination, trace_.failed[0]).evidence;
  EXPECT_EQ(evidence.total_bytes, 0u);
  EXPECT_EQ(evidence.limit_bytes, 300 * kMiB);
}

}  // namespace
}  // namespace gmt::analysis
