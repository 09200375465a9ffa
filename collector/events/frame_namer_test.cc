#include "collector/events/frame_namer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "proto/gmt.pb.h"
#include "symbols/testing/sample_library.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;

namespace fs = std::filesystem;

constexpr uint64_t kNamingPatience = 60'000'000'000;

class FrameNamerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("frame_namer." + std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  symbols::FrameRequest Probe(uint32_t frame, const std::string& path) {
    return {frame,
            {path, sample_.key().build_id},
            sample_.Probe("sample_inline_probe"),
            symbols::AddressKind::kReturn};
  }
  // Returns the lines that a namer finds.
  std::vector<uint32_t> Lines(symbols::SymbolizerOptions options, const std::string& cache,
                              std::vector<symbols::FrameRequest> requests) {
    FrameNamer namer(std::move(options), cache);
    namer.Add(std::move(requests));
    namer.WaitUntilDone(kNamingPatience);
    const gmt::Symbols names = namer.TakeNames(&definitions_);
    EXPECT_TRUE(namer.idle());
    return {names.line().begin(), names.line().end()};
  }

  fs::path dir_;
  const symbols::SampleLibrary sample_{"full"};
  format::DefinitionsBuilder definitions_;
};

TEST_F(FrameNamerTest, NamesWhatItCanAndOmitsTheRest) {
  EXPECT_THAT(Lines({}, "", {Probe(1, sample_.path()), Probe(2, "/gone/sample.so")}),
              ElementsAre(15, 20, 26));
}

TEST_F(FrameNamerTest, TakesNamesFromTheCacheOfAnotherCollector) {
  const std::string cache = dir_ / "cache";
  for (int collector = 0; collector < 2; ++collector) {
    EXPECT_THAT(Lines({}, cache, {Probe(1, sample_.path())}), ElementsAre(15, 20, 26));
  }
  auto opened = symbols::SymbolCache::Open(cache);
  if (!opened.ok()) GTEST_SKIP() << opened.status().message();
  EXPECT_TRUE(fs::exists(dir_ / "cache/names-1.sqlite"));
}

TEST_F(FrameNamerTest, UnavailableCacheOnlyCostsTime) {
  fs::permissions(dir_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(Lines({}, dir_, {Probe(1, sample_.path())}), ElementsAre(15, 20, 26));
  EXPECT_THAT(Lines({}, "/proc/nowhere", {Probe(1, sample_.path())}), ElementsAre(15, 20, 26));
}

TEST_F(FrameNamerTest, PathsOfATargetWithAnotherRootAreRelativeToIt) {
  fs::create_directories(dir_ / "opt");
  fs::copy_file(sample_.path(), dir_ / "opt/sample.so");
  symbols::SymbolizerOptions options;
  options.root = dir_;
  EXPECT_THAT(Lines(options, "", {Probe(1, "/opt/sample.so")}), ElementsAre(15, 20, 26));
}

TEST_F(FrameNamerTest, EndsImmediatelyWithWorkLeft) {
  std::vector<symbols::FrameRequest> requests(100'000, Probe(1, ""));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].module.path = "/gone/" + std::to_string(i);
  }
  FrameNamer namer({}, "");
  namer.Add(std::move(requests));
  EXPECT_FALSE(namer.idle());
}

}  // namespace
}  // namespace gmt::collector
