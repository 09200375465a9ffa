#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "interop/profile/folded_stacks.h"
#include "interop/profile/layer_selection.h"
#include "interop/profile/speedscope.h"
#include "interop/profile/stack_profile.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using analysis::EventScript;

class TextProfilesTest : public ::testing::Test {
 protected:
  template <typename Write>
  std::string Written(const std::string& at, const Write& write) {
    const analysis::Trace trace = script_.Build();
    const analysis::Examination examination(trace, script_.definitions());
    const auto profile = MakeStackProfile(examination, {analysis::ParseAt(at).value(), {}, ""});
    EXPECT_TRUE(profile.ok()) << profile.status();
    return write(examination, *profile);
  }
  std::string Folded(const std::string& at) { return Written(at, FoldedStacks); }
  nlohmann::json Speedscope(const std::string& at) {
    return nlohmann::json::parse(Written(at, [](const auto& examination, const auto& profile) {
      return SpeedscopeJson(examination, profile, "run.gmt");
    }));
  }

  EventScript script_;
};

TEST_F(TextProfilesTest, LineIsAStackFromTheOutsideWithItsBytes) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment", "main"});
  script_.Block(0x100000000, kMiB, {"forward", "main"});
  script_.Block(0x100100000, 2 * kMiB, {"loss", "main"});
  script_.Block(0x100300000, kMiB, {"freed", "main"});
  script_.FreeBlock(0x100300000);
  EXPECT_EQ(Folded("end"),
            "cuda:0;pytorch;main (main.py:10);loss (loss.py:10) 2097152\n"
            "cuda:0;pytorch;main (main.py:10);forward (forward.py:10) 1048576\n");
}

TEST_F(TextProfilesTest, NamesCannotForgeFramesOrLines) {
  script_.Alloc(0x1000, 512, {"a;b\nmain 99"});
  EXPECT_EQ(Folded("end"), "cuda:0;driver;a:b\\nmain 99 (a:b\\nmain 99.py:10) 512\n");
}

TEST_F(TextProfilesTest, MemoryWithoutStackKeepsItsBytes) {
  script_.Alloc(0x1000, 512);
  EXPECT_EQ(Folded("end"), "cuda:0;driver;(no stack) 512\n");
}

TEST_F(TextProfilesTest, SpeedscopeHasHeldAndAllocatedBytesOfEachHeap) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment", "main"});
  script_.Block(0x100000000, kMiB, {"forward", "main"});
  script_.FreeBlock(0x100000000);
  script_.Block(0x100000000, kMiB, {"forward", "main"});
  const nlohmann::json file = Speedscope("end");
  ASSERT_EQ(file["profiles"].size(), 2u);
  const nlohmann::json& held = file["profiles"][0];
  EXPECT_EQ(held["name"], "cuda:0 pytorch: held at end");
  EXPECT_EQ(held["endValue"], kMiB);
  EXPECT_EQ(held["weights"], nlohmann::json({kMiB}));
  EXPECT_EQ(file["profiles"][1]["weights"], nlohmann::json({2 * kMiB}));
  std::vector<std::string> names;
  for (const size_t frame : held["samples"][0])
    names.push_back(file["shared"]["frames"][frame]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"main", "forward"}));
}

TEST_F(TextProfilesTest, SpeedscopeFirstShowsTheHeapThatHoldsMost) {
  script_.Alloc(0x1000, 512, {"main"});
  script_.Alloc(0x2000, 4096, {"main"}).device = 1;
  const nlohmann::json file = Speedscope("end");
  EXPECT_EQ(file["profiles"][file["activeProfileIndex"].get<size_t>()]["name"],
            "cuda:1 driver: held at end");
}

TEST_F(TextProfilesTest, StatesAtSeveralMomentsAreThoseOfEachAlone) {
  ForEachSeed({1, 2, 3}, [&](uint32_t seed) {
    std::mt19937 random(seed);
    script_ = EventScript();
    std::set<uint64_t> live;
    for (int i = 0; i < 300; ++i) {
      const uint64_t address = (1 + random() % 30) << 20;
      if (live.erase(address) > 0) {
        script_.Free(address);
      } else {
        live.insert(address);
        script_.Alloc(address, 1 + random() % 1000, {"f" + std::to_string(random() % 5), "main"});
      }
      if (i % 40 == 0) script_.SnapshotTaken("s" + std::to_string(i));
    }
    const analysis::Trace trace = script_.Build();
    const analysis::Examination examination(trace, script_.definitions());
    const std::vector<StackHistory> histories = MakeStackHistories(examination);
    ASSERT_EQ(histories.size(), 1u);
    ASSERT_GE(histories[0].instants.size(), 8u);
    for (size_t i = 0; i < histories[0].instants.size(); ++i) {
      const analysis::At at = analysis::ParseAt(histories[0].instants[i].name).value();
      std::map<uint32_t, std::vector<int64_t>> wanted, found;  // by stack
      const auto values = [](const StackProfile::Sample& sample) {
        return std::vector<int64_t>{sample.alloc_objects, sample.alloc_space, sample.inuse_objects,
                                    sample.inuse_space};
      };
      const auto alone = MakeStackProfile(examination, {at, {}, ""});
      ASSERT_TRUE(alone.ok()) << alone.status();
      for (const StackProfile::Sample& sample : alone->samples) {
        if (sample.alloc_objects > 0) wanted[sample.stack] = values(sample);
      }
      for (const auto& site : histories[0].sites) {
        if (site[i].alloc_objects > 0) found[site[i].stack] = values(site[i]);
      }
      EXPECT_EQ(found, wanted) << histories[0].instants[i].name;
    }
  });
}

TEST_F(TextProfilesTest, NothingAllocatedIsAnEmptyProfile) {
  EXPECT_EQ(Folded("end"), "");
  EXPECT_EQ(Speedscope("end")["profiles"].size(), 1u);
}

}  // namespace
}  // namespace gmt::interop
