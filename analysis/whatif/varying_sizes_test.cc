#include "analysis/whatif/varying_sizes.h"

#include <cstdint>
#include <vector>

#include "analysis/testing/training_script.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kAddress = uint64_t{1} << 32, kOther = uint64_t{2} << 32;

class VaryingSizesTest : public ::testing::Test {
 protected:
  // Runs steps whose forward passes allocate blocks of these sizes, one after the other; the last
  // block stays.
  void Train(const std::vector<std::vector<uint64_t>>& sizes_of_steps, uint32_t stack) {
    for (size_t i = 0; i < sizes_of_steps.size(); ++i) {
      for (size_t k = 0; k < sizes_of_steps[i].size(); ++k) {
        script_.Block(kAddress, sizes_of_steps[i][k], stack);
        const bool is_last = i + 1 == sizes_of_steps.size() && k + 1 == sizes_of_steps[i].size();
        if (!is_last) script_.Free(kAddress);
      }
      script_.Backward([&] {
        script_.Block(kOther, 2 * kMiB, script_.InBackward("MmBackward0"));
        script_.Free(kOther);
      });
      script_.Optimizer([&] {
        script_.Block(kOther, 2 * kMiB, script_.State());
        script_.Free(kOther);
      });
    }
  }
  std::vector<VaryingSite> Find() {
    trace_ = script_.script().Build();
    const Examination examination(trace_, script_.script().definitions());
    return FindVaryingSites(examination, 0, trace_.last_step());
  }

  TrainingScript script_;
  Trace trace_;
};

TEST_F(VaryingSizesTest, CodeThatRequestsAnotherSizeInEachStepVaries) {
  Train({{3 * kMiB}, {7 * kMiB}, {5 * kMiB}, {4 * kMiB}}, script_.InForward());
  const std::vector<VaryingSite> sites = Find();
  ASSERT_THAT(sites, SizeIs(1));
  EXPECT_EQ(sites[0].requests, 4u);
  EXPECT_EQ(sites[0].sizes, 4u);
  EXPECT_EQ(sites[0].smallest, 3 * kMiB);
  EXPECT_EQ(sites[0].largest, 7 * kMiB);
  EXPECT_EQ(sites[0].held_bytes, 4 * kMiB);
}

TEST_F(VaryingSizesTest, LayersOfDifferentSizesThatRecurInEachStepDoNotVary) {
  const std::vector<uint64_t> layers = {3 * kMiB, 7 * kMiB, 5 * kMiB, 4 * kMiB};
  Train({layers, layers, layers, layers}, script_.InForward());
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(VaryingSizesTest, SmallBlocksDoNotCount) {
  Train({{300 * kKiB}, {700 * kKiB}, {500 * kKiB}, {400 * kKiB}}, script_.InForward());
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(VaryingSizesTest, PaddedBlocksHaveTheLargestSizeOfTheirCode) {
  Train({{3 * kMiB}, {7 * kMiB}, {5 * kMiB}, {4 * kMiB}}, script_.InForward());
  const std::vector<VaryingSite> sites = Find();
  ProgramChange change(trace_, 0);
  PadToLargest(sites, change);
  EXPECT_EQ(change.HeldAt(trace_.last_step()), 7 * kMiB);
}

}  // namespace
}  // namespace gmt::analysis
