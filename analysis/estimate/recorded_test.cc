#include "analysis/estimate/recorded.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gmt::analysis {
namespace {

Recorded With(uint64_t weights, uint64_t gradients, uint64_t state, uint64_t computation) {
  Recorded recorded;
  recorded.groups = {weights, gradients, state, computation, 0, 0};
  return recorded;
}

Estimate OfGpt(const Plan& plan) {
  return *EstimateOf(*ModelOfShape({12, 768, 12, 50'000, 1024}), plan);
}

TEST(RecordedTest, GroupsAreWhatTheProgramAllocates) {
  for (const MomentEstimate& moment : OfGpt({.gpus = 2, .batch = 4}).moments) {
    const GroupBytes groups = GroupsOf(moment);
    EXPECT_EQ(std::accumulate(groups.begin(), groups.end(), uint64_t{0}),
              moment.bytes - moment.BytesOf(Part::kContext) - moment.BytesOf(Part::kCache));
  }
}

TEST(RecordedTest, TheSizeOfItsStateShowsTheOptimizer) {
  EXPECT_EQ(OptimizerOf(With(100, 0, 200, 0)), OptimizerKind::kAdamW);
  EXPECT_EQ(OptimizerOf(With(100, 0, 101, 0)), OptimizerKind::kSgdMomentum);
  EXPECT_EQ(OptimizerOf(With(100, 0, 51, 0)), OptimizerKind::kAdam8Bit);
  EXPECT_EQ(OptimizerOf(With(100, 0, 0, 0)), OptimizerKind::kSgd);
}

TEST(RecordedTest, ARunIsComparedWithTheMomentThatItResembles) {
  const Estimate estimate = OfGpt({.batch = 1, .length = 64});
  ASSERT_EQ(estimate.Peak().moment, Moment::kOptimizer);
  for (const MomentEstimate& moment : estimate.moments) {
    Recorded recorded;
    recorded.groups = GroupsOf(moment);
    EXPECT_EQ(NearestMoment(estimate, recorded).moment, moment.moment);
  }
}

}  // namespace
}  // namespace gmt::analysis
