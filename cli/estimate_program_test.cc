// Runs `gpumemtrace estimate` with the options for gradients and master weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;

class EstimateProgramTest : public ProgramFixture {
 protected:
  uint64_t BytesOf(const std::string& part, const std::string& options) {
    const nlohmann::json answer = RunJson("estimate --parameters 1B --json " + options);
    for (const nlohmann::json& row : answer["parts"]) {
      if (row["name"] == part) return row["bytes"];
    }
    ADD_FAILURE() << "no " << part << " in " << out_;
    return 0;
  }
};

TEST_F(EstimateProgramTest, Fp32GradientsDoubleTheGradientsOfSixteenBitWeights) {
  const uint64_t narrow = BytesOf("gradients", "--precision bf16");
  EXPECT_EQ(BytesOf("gradients", "--precision bf16 --fp32-gradients"), 2 * narrow);
  EXPECT_EQ(BytesOf("gradients", "--precision bf16 --master-weights"), narrow);
}

TEST_F(EstimateProgramTest, Fp32GradientsOfFp32WeightsAreWrongUsage) {
  EXPECT_EQ(Run("estimate --parameters 1B --precision fp32 --fp32-gradients"), 2);
  EXPECT_THAT(err_, HasSubstr("weights are in fp32 already"));
}

}  // namespace
}  // namespace gmt::cli
