#include "viewer/index/index_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/index_archive.h"
#include "viewer/index/index_parts.h"

namespace gmt::viewer {
namespace {

namespace fs = std::filesystem;
using analysis::EventScript;

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

class IndexCacheTest : public ::testing::Test {
 protected:
  IndexCacheTest() {
    std::string folder = ::testing::TempDir() + "/index_cache.XXXXXX";
    folder_ = mkdtemp(folder.data());
    recording_ = folder_ / "run.gmt";
    Write(recording_, "what a recording has in it");
    setenv("XDG_CACHE_HOME", (folder_ / "caches").c_str(), 1);
    Build();
  }
  ~IndexCacheTest() override {
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }

  void Build() {
    script_.Alloc(0x10000000, 1 << 24, {"segment"});
    for (uint64_t i = 0; i < 400; ++i) {
      if (i % 50 == 0) script_.Mark("step", i / 50);
      script_.Block(0x10000000 + i % 100 * 4096, 512 * (1 + i % 7), {"f" + std::to_string(i % 5)});
      if (i % 3 != 0) script_.FreeBlock(0x10000000 + i % 100 * 4096);
    }
    trace_ = script_.Build();
    const analysis::Examination examination(trace_, script_.definitions());
    std::mutex mutex;
    index_.Build(examination, mutex, [](std::string_view, double) {});
    const analysis::Categories categories = Categorize(examination);
    index_.AddCategories(trace_, categories, analysis::AliveTexts(examination, categories));
  }

  fs::path Beside() const { return folder_ / ".run.gmt.view"; }

  static BlockTile Blocks(const ViewIndex& index, Axis axis, Layout layout) {
    BlockQuery query;
    query.window = {0, axis, 0, index.PositionOf(axis, index.events()), 200};
    query.layout = layout;
    query.high = 1 << 21;
    query.rows = 1 << 12;
    auto tile = index.SelectBlocks(query);
    return tile.ok() ? *std::move(tile) : BlockTile();
  }
  // Runs all queries. Whatever they return, they terminate and read only their own memory.
  static size_t AskEverything(const ViewIndex& index) {
    size_t answers = index.streams().size() + index.threads().size();
    for (uint32_t lane = 0; lane < index.lanes().size(); ++lane) {
      for (const Axis axis : {Axis::kTime, Axis::kEvent, Axis::kStep}) {
        for (const double to : {1.0, 40.0, 1e7}) {
          BlockQuery query;
          query.window = {lane, axis, 0, to, 50};
          query.high = 1e9;
          query.rows = 100000;
          if (const auto curve = index.SelectCurve(query.window); curve.ok()) {
            answers += curve->event.size();
          }
          for (const Layout layout : {Layout::kStacked, Layout::kAddress}) {
            query.layout = layout;
            if (const auto tile = index.SelectBlocks(query); tile.ok()) answers += tile->row.size();
          }
        }
      }
    }
    return answers;
  }

  fs::path folder_, recording_;
  EventScript script_;
  analysis::Trace trace_;
  ViewIndex index_;
};

TEST_F(IndexCacheTest, LoadedIndexAnswersLikeTheSavedOne) {
  ASSERT_TRUE(SaveIndex(recording_, index_, "some text").ok());
  const CachedIndex cached = LoadIndex(recording_);
  ASSERT_NE(cached.index, nullptr);
  EXPECT_EQ(cached.meta, "some text");
  EXPECT_EQ(cached.index->stage(), ViewIndex::Stage::kReady);
  ASSERT_EQ(cached.index->lanes().size(), index_.lanes().size());
  EXPECT_EQ(cached.index->lanes()[0].label, "GPU 0 · PyTorch blocks");
  EXPECT_EQ(cached.index->lanes()[0].peak_bytes, index_.lanes()[0].peak_bytes);
  EXPECT_EQ(cached.index->lanes()[0].series, index_.lanes()[0].series);
  for (const Axis axis : {Axis::kTime, Axis::kEvent, Axis::kStep}) {
    for (const Layout layout : {Layout::kStacked, Layout::kAddress}) {
      const BlockTile before = Blocks(index_, axis, layout);
      const BlockTile after = Blocks(*cached.index, axis, layout);
      EXPECT_FALSE(before.row.empty());
      EXPECT_EQ(after.row, before.row);
      EXPECT_EQ(after.start, before.start);
      EXPECT_EQ(after.place, before.place);
      EXPECT_EQ(after.key, before.key);
      EXPECT_EQ(after.category, before.category);
      EXPECT_EQ(after.run_bytes, before.run_bytes);
      EXPECT_EQ(after.spaces.size(), before.spaces.size());
    }
  }
}

TEST_F(IndexCacheTest, CacheOfAChangedRecordingIsIgnored) {
  ASSERT_TRUE(SaveIndex(recording_, index_, "").ok());
  Write(recording_, "what a recording has in him");
  EXPECT_EQ(LoadIndex(recording_).index, nullptr);
}

TEST_F(IndexCacheTest, RecordingWithoutCacheHasNone) {
  EXPECT_EQ(LoadIndex(recording_).index, nullptr);
  EXPECT_EQ(LoadIndex(folder_ / "nothing").index, nullptr);
}

TEST_F(IndexCacheTest, IncompleteIndexIsNotSaved) {
  const ViewIndex empty;
  EXPECT_FALSE(SaveIndex(recording_, empty, "").ok());
  EXPECT_FALSE(fs::exists(Beside()));
}

TEST_F(IndexCacheTest, FallsBackToTheUsersCacheDirectory) {
  fs::create_directories(Beside() / "in the way");
  ASSERT_TRUE(SaveIndex(recording_, index_, "there").ok());
  EXPECT_EQ(LoadIndex(recording_).meta, "there");
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "caches")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(IndexCacheTest, LeavesNoOtherFiles) {
  ASSERT_TRUE(SaveIndex(recording_, index_, "").ok());
  ASSERT_TRUE(SaveIndex(recording_, index_, "again").ok());
  EXPECT_EQ(LoadIndex(recording_).meta, "again");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 2u);
}

TEST_F(IndexCacheTest, RemovesFilesOfKilledWritersButNotOfLiveOnes) {
  const std::string left = Beside().string() + ".17.tmp", written = Beside().string() + ".18.tmp";
  const std::string other = (folder_ / ".other.gmt.view.17.tmp").string();
  for (const std::string& path : {left, written, other}) std::ofstream(path) << "begun";
  const int writer = open(written.c_str(), O_RDWR);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  ASSERT_TRUE(SaveIndex(recording_, index_, "").ok());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(written));
  EXPECT_TRUE(fs::exists(other));
  close(writer);
}

TEST_F(IndexCacheTest, KillingAWriterAtAnyMomentLeavesTheOldIndexOrTheNewOne) {
  const std::string meta(4 << 20, 'x');
  ASSERT_TRUE(SaveIndex(recording_, index_, meta).ok());
  ForEachSeed(SeedsUpTo(40), [&](uint32_t seed) {
    std::mt19937 random(seed);
    const pid_t child = fork();
    if (child == 0) {
      while (SaveIndex(recording_, index_, meta).ok()) {
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(random() % 20'000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "an index could not be saved";
    ASSERT_EQ(LoadIndex(recording_).meta.size(), meta.size());
  });
  ASSERT_TRUE(SaveIndex(recording_, index_, meta).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(IndexCacheTest, TruncatedCacheIsIgnored) {
  ASSERT_TRUE(SaveIndex(recording_, index_, "meta").ok());
  const std::string whole = Content(Beside());
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 150) {
    Write(Beside(), whole.substr(0, size));
    ASSERT_EQ(LoadIndex(recording_).index, nullptr) << size << " bytes";
  }
}

TEST_F(IndexCacheTest, DetectsEveryFlippedBit) {
  ASSERT_TRUE(SaveIndex(recording_, index_, "meta").ok());
  const std::string whole = Content(Beside());
  ForEachSeed({1}, [&](uint32_t seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 300; ++round) {
      std::string damaged = whole;
      const size_t at = round < 120 ? static_cast<size_t>(round) : random() % whole.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      Write(Beside(), damaged);
      ASSERT_EQ(LoadIndex(recording_).index, nullptr) << "byte " << at;
    }
  });
}

// The checksums of a malicious file may be right.
TEST_F(IndexCacheTest, ReadingMutatedBytesTerminatesAndStaysInBounds) {
  IndexWriter writer;
  writer.Item(const_cast<IndexParts&>(index_.parts()));
  std::string joined;
  for (const std::string_view piece : writer.data()) joined += piece;
  ForEachSeed({1}, [&](uint32_t seed) {
    std::mt19937 random(seed);
    int sane = 0;
    size_t answers = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string outline = writer.outline();
      // A copy of exactly that size, so that a sanitizer detects any access out of bounds.
      auto data = std::make_unique<uint64_t[]>(joined.size() / 8);
      std::memcpy(data.get(), joined.data(), joined.size());
      auto* bytes = reinterpret_cast<char*>(data.get());
      for (uint32_t n = random() % 4; n > 0; --n) {
        outline[random() % outline.size()] = static_cast<char>(random());
      }
      for (uint32_t n = random() % 20; n > 0; --n) {
        bytes[random() % joined.size()] = static_cast<char>(random());
      }
      if (random() % 10 == 0) outline.resize(random() % outline.size());
      auto parts = std::make_unique<IndexParts>();
      IndexReader reader(outline, {bytes, joined.size()}, /*check_columns=*/false);
      reader.Item(*parts);
      if (!reader.is_whole() || !IsSane(*parts)) continue;
      ++sane;
      answers += AskEverything(*ViewIndex::FromParts(std::move(parts)));
    }
    EXPECT_GT(sane, 300);
    EXPECT_GT(answers, 0u);
  });
}

}  // namespace
}  // namespace gmt::viewer
