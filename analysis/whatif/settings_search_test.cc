#include "analysis/whatif/settings_search.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/whatif/replay.h"
#include "format/units.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

class SettingsSearchTest : public ::testing::Test {
 protected:
  uint32_t Allocate(uint64_t bytes) {
    history_.requests.push_back({AllocatorRequest::kAllocate, 0, 0, next_, bytes});
    return next_++;
  }
  void Free(uint32_t allocation) {
    history_.requests.push_back({AllocatorRequest::kFree, 0, 0, allocation, 0});
  }
  // Batches of growing size: no cached segment is large enough for the next one.
  void Grow() {
    for (uint64_t mib = 20; mib <= 120; mib += 10) Free(Allocate(mib * kMiB));
  }
  void Randomize(uint32_t seed) {
    std::mt19937 random(seed);
    history_ = AllocatorHistory();
    history_.device_bytes = 16 * kGiB;
    next_ = 0;
    std::vector<uint32_t> live;
    for (int i = 0; i < 400; ++i) {
      if (!live.empty() && random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        Free(live.back());
        live.pop_back();
      } else {
        live.push_back(Allocate(1 + random() % (random() % 4 == 0 ? 200 * kMiB : 8 * kMiB)));
      }
    }
  }
  uint64_t Reserved(std::string_view options) const {
    AllocatorSettings settings;
    EXPECT_TRUE(settings.Change(options).ok()) << options;
    return PeakReserved(history_, settings).value_or(0);
  }

  AllocatorHistory history_;
  uint32_t next_ = 0;
};

TEST_F(SettingsSearchTest, FindsExpandableSegmentsForSizesThatGrow) {
  Grow();
  const SettingsSearch search = SearchSettings(history_);
  EXPECT_EQ(search.recorded_reserved, Reserved(""));
  ASSERT_TRUE(search.best);
  EXPECT_EQ(search.best->options, "expandable_segments:True");
  EXPECT_EQ(search.best->peak_reserved, 120 * kMiB);
  EXPECT_GE(search.best->worst_reserved, search.best->peak_reserved);
}

TEST_F(SettingsSearchTest, CombinesOptionsIfThatSavesMore) {
  int combined = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Randomize(seed);
    history_.torch = TorchVersion{2, 12};
    const SettingsSearch search = SearchSettings(history_);
    if (!search.best || search.best->options.find(',') == std::string::npos) continue;
    ++combined;
    for (const std::string& option : SplitAllocatorOptions(search.best->options))
      EXPECT_LT(search.best->peak_reserved, Reserved(option)) << search.best->options;
  }
  EXPECT_GT(combined, 0);
}

TEST_F(SettingsSearchTest, RemovesARecordedOptionThatHarms) {
  history_.settings.max_split_bytes = 32 * kMiB;
  history_.other_options = "pinned_use_background_threads:True";
  // A block of 100 MiB could serve these, but may not be split.
  Free(Allocate(100 * kMiB));
  for (int i = 0; i < 4; ++i) Allocate(25 * kMiB);
  const SettingsSearch search = SearchSettings(history_);
  ASSERT_TRUE(search.best);
  EXPECT_EQ(search.best->peak_reserved, 100 * kMiB);
  EXPECT_EQ(search.best->settings.max_split_bytes, AllocatorSettings::kUnlimited);
  EXPECT_THAT(search.best->options, HasSubstr("pinned_use_background_threads:True"));
}

TEST_F(SettingsSearchTest, SettingsThatSaveNothingAreNotFound) {
  for (int i = 0; i < 8; ++i) Allocate(64 * kMiB);
  const SettingsSearch search = SearchSettings(history_);
  EXPECT_EQ(search.recorded_reserved, 512 * kMiB);
  EXPECT_GT(search.tried, 8u);
  EXPECT_FALSE(search.best);
}

TEST_F(SettingsSearchTest, OptionsThatTheReleaseDoesNotHaveAreNotTried) {
  Grow();
  const uint64_t unknown = SearchSettings(history_).tried;
  history_.torch = TorchVersion{2, 5};
  EXPECT_EQ(SearchSettings(history_).tried, unknown);
  history_.torch = TorchVersion{2, 11};
  EXPECT_GT(SearchSettings(history_).tried, unknown);
}

// Whatever the requests, what is promised is what a replay with the text of the options reserves,
// and the search is bounded.
TEST_F(SettingsSearchTest, PromisesWhatAReplayReserves) {
  ForEachSeed(SeedsUpTo(30), [this](uint32_t seed) {
    Randomize(seed);
    history_.torch = TorchVersion{2, seed % 2 == 0 ? 4 : 12};
    const SettingsSearch search = SearchSettings(history_);
    EXPECT_LE(search.tried, kMaxSettings);
    EXPECT_EQ(search.recorded_reserved, Reserved(""));
    if (!search.best) return;
    EXPECT_EQ(search.best->peak_reserved, Reserved(search.best->options));
    EXPECT_LE(search.best->peak_reserved, search.best->worst_reserved);
    EXPECT_LT(search.best->worst_reserved, search.recorded_reserved);
    EXPECT_LE(search.best->peak_reserved, Reserved("expandable_segments:True"));
  });
}

}  // namespace
}  // namespace gmt::analysis
