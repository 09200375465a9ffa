#include "analysis/leaks/leak_cycles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"
#include "analysis/testing/python_stack.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeakCyclesTest : public ::testing::Test {
 protected:
  LeakCycles Find(Window window = {}) {
    trace_ = script_.Build();
    return CyclesForLeaks(Examination(trace_, script_.definitions()), window);
  }
  // Runs a request of any length: allocates, then frees.
  void Request(uint32_t blocks) {
    for (uint32_t i = 0; i < blocks; ++i) script_.Block((i + 1) << 20, 1 << 10);
    for (uint32_t i = 0; i < blocks; ++i) script_.FreeBlock((i + 1) << 20);
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(LeakCyclesTest, MarkedStepsTakePrecedence) {
  for (uint64_t step = 0; step <= 5; ++step) {
    script_.Mark("step", step);
    Request(3);
  }
  const LeakCycles found = Find();
  EXPECT_EQ(found.source, "mark step");
  EXPECT_FALSE(found.inferred);
  EXPECT_TRUE(found.clear);
  EXPECT_THAT(found.cycles, SizeIs(5));
}

TEST_F(LeakCyclesTest, OnlyStepsInTheWindowCount) {
  for (uint64_t step = 0; step <= 5; ++step) {
    script_.Mark("step", step);
    Request(3);
  }
  // A step is 7 events of a millisecond.
  EXPECT_THAT(Find({7'000'000, 22'000'000}).cycles, SizeIs(2));
  EXPECT_THAT(Find({1'000'000'000, INT64_MAX}).cycles, IsEmpty());
}

TEST_F(LeakCyclesTest, RequestsOfAServerEndAtLowWater) {
  script_.Block(uint64_t{1} << 40, 1 << 20);  // the model
  for (uint32_t i = 0; i < 400; ++i) Request(20 + i * 7919 % 11);
  const LeakCycles found = Find();
  EXPECT_EQ(found.source, "low-water marks");
  EXPECT_TRUE(found.inferred);
  EXPECT_TRUE(found.clear);
  EXPECT_NEAR(static_cast<double>(found.cycles.size()), 400, 25);
}

TEST_F(LeakCyclesTest, WithoutRecurrenceThereAreEqualParts) {
  for (uint32_t i = 0; i < 3000; ++i) script_.Block(uint64_t{i + 1} << 20, 1 << 10);
  const LeakCycles found = Find();
  EXPECT_EQ(found.source, "equal parts");
  EXPECT_FALSE(found.clear);
  EXPECT_THAT(found.cycles, SizeIs(150));
  EXPECT_EQ(found.cycles[1].end - found.cycles[1].begin, 20u);
}

TEST_F(LeakCyclesTest, OnePassOfAModelHasNoCycles) {
  const uint32_t layer = PythonStack(script_, {{"forward", "/src/block.py"},
                                               {"_call_impl", "/torch/nn/modules/module.py"},
                                               {"main", "/src/train.py"}});
  for (uint32_t i = 0; i < 3000; ++i) {
    script_.Block(uint64_t{i + 1} << 20, 1 << 10).stack = layer;
    script_.Block(uint64_t{1} << 40, 1 << 20).stack = layer;
    script_.FreeBlock(uint64_t{1} << 40);
  }
  EXPECT_THAT(Find().cycles, IsEmpty());
}

TEST_F(LeakCyclesTest, EmptyRecordingHasNoCycles) {
  const LeakCycles found = Find();
  EXPECT_THAT(found.cycles, IsEmpty());
  EXPECT_EQ(found.source, "");
}

}  // namespace
}  // namespace gmt::analysis
