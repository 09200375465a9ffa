#include "session/launcher.h"

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gmt::session {
namespace {

using Variables = std::initializer_list<std::pair<const char*, const char*>>;

class LauncherTest : public testing::Test {
 protected:
  // The tests themselves may run under a launcher.
  LauncherTest() { clearenv(); }

  static Launcher Under(Variables variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    return Launcher::Read();
  }

  // Returns rank, local rank, world size, node rank, restarts and job; "-" if unknown.
  static std::string All(const Launcher& launcher) {
    std::string text;
    for (const char* field : {launcher.rank, launcher.local_rank, launcher.world_size,
                              launcher.node_rank, launcher.restart_count, launcher.job}) {
      text += (text.empty() ? "" : " ") + std::string(*field == '\0' ? "-" : field);
    }
    return text;
  }
};

TEST_F(LauncherTest, ProcessWithoutALauncherHasNoRank) { EXPECT_EQ(All(Under({})), "- - - - - -"); }

TEST_F(LauncherTest, TorchrunSetsEverything) {
  EXPECT_EQ(All(Under({{"RANK", "9"},
                       {"LOCAL_RANK", "1"},
                       {"WORLD_SIZE", "16"},
                       {"GROUP_RANK", "1"},
                       {"TORCHELASTIC_RESTART_COUNT", "2"},
                       {"TORCHELASTIC_RUN_ID", "nightly"}})),
            "9 1 16 1 2 nightly");
}

TEST_F(LauncherTest, TorchrunsJobNameNoneMeansNoJob) {
  EXPECT_EQ(All(Under({{"RANK", "0"}, {"TORCHELASTIC_RUN_ID", "none"}})), "0 - - - - -");
}

TEST_F(LauncherTest, WorkersOfTorchrunUnderSrunHaveTheirOwnRanks) {
  EXPECT_EQ(All(Under({{"SLURM_PROCID", "1"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_NTASKS", "2"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_JOB_ID", "4711"},
                       {"RANK", "13"},
                       {"LOCAL_RANK", "5"},
                       {"WORLD_SIZE", "16"}})),
            "13 5 16 1 - 4711");
}

TEST_F(LauncherTest, SrunVariablesAreReadWithoutTorchrun) {
  EXPECT_EQ(All(Under({{"SLURM_PROCID", "3"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_NTASKS", "4"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_RESTART_COUNT", "1"},
                       {"SLURM_JOB_ID", "4711"}})),
            "3 1 4 1 1 4711");
}

TEST_F(LauncherTest, SizeAndLocalRankOfAnotherLauncherAreNotMixedIn) {
  // A worker started by the program itself inside one Slurm task.
  EXPECT_EQ(
      All(Under(
          {{"RANK", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "1"}})),
      "3 - - - - -");
}

TEST_F(LauncherTest, OpenMpiTakesPrecedenceOverLowerLayers) {
  EXPECT_EQ(All(Under({{"PMIX_RANK", "8"},
                       {"SLURM_PROCID", "0"},
                       {"OMPI_COMM_WORLD_RANK", "2"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                       {"OMPI_COMM_WORLD_SIZE", "4"}})),
            "2 0 4 - - -");
}

TEST_F(LauncherTest, MpichUsesPmi) {
  EXPECT_EQ(All(Under({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}})),
            "1 1 2 - - -");
}

TEST_F(LauncherTest, IndexedJobOfKubernetesHasARank) {
  EXPECT_EQ(All(Under({{"JOB_COMPLETION_INDEX", "5"}})), "5 - - - - -");
}

TEST_F(LauncherTest, VariablesOfTheUserTakePrecedence) {
  EXPECT_EQ(All(Under({{"GPUMEMTRACE_RANK", "77"}, {"RANK", "1"}, {"WORLD_SIZE", "128"}})),
            "77 - 128 - - -");
}

TEST_F(LauncherTest, SizeWithoutARankIsKept) {
  EXPECT_EQ(All(Under({{"WORLD_SIZE", "8"}})), "- - 8 - - -");
}

TEST_F(LauncherTest, NonNumericRankIsIgnored) {
  for (const char* text : {"", "-1", "three", "3.0", "0x3", "1/../2", "99999999999"}) {
    EXPECT_EQ(All(Under({{"RANK", text}, {"SLURM_PROCID", "4"}})), "4 - - - - -") << text;
  }
}

TEST_F(LauncherTest, EnvironmentOfAnotherProcessIsRead) {
  setenv("RANK", "1", 1);
  const auto look_up = [](void* asked, const char* name) -> const char* {
    ++*static_cast<int*>(asked);
    return std::string(name) == "SLURM_PROCID" ? "6" : nullptr;
  };
  int asked = 0;
  EXPECT_EQ(All(Launcher::Read(look_up, &asked)), "6 - - - - -");
  EXPECT_GT(asked, 0);
}

TEST_F(LauncherTest, LauncherVariablesAreRecognized) {
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_JOB_ID", "GROUP_RANK",
                           "TORCHELASTIC_RESTART_COUNT", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    EXPECT_TRUE(IsLauncherVariable(name)) << name;
  }
  EXPECT_FALSE(IsLauncherVariable("HOME"));
  EXPECT_FALSE(IsLauncherVariable("RANK_OF_MINE"));
}

}  // namespace
}  // namespace gmt::session
