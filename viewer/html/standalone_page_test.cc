#include "viewer/html/standalone_page.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/testing/event_script.h"
#include "format/allocator_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "viewer/html/standalone_file.h"
#include "viewer/served/recording.h"

namespace gmt::viewer {
namespace {

using ::testing::HasSubstr;

// Returns a page as long as the real one.
std::string Page() {
  return absl::StrCat(
      "<!doctype html>\n<html><head><meta http-equiv=\"Content-Security-Policy\" content=\"-\">",
      "<title>gpumemtrace</title><script>", std::string(250'000, 'x'),
      "</script></head><body></body></html>");
}

// A recording as `export` prepares it.
class Exported {
 public:
  explicit Exported(std::unique_ptr<answers::Recording> data) {
    backend_.load = [&data](const std::string&, const answers::LoadListener&) {
      return absl::StatusOr<std::unique_ptr<answers::Recording>>(std::move(data));
    };
    backend_.answer = [](const std::string&,
                         const answers::Recording&) -> absl::StatusOr<answers::Answer> {
      return answers::Answer{"nothing\n", "{}"};
    };
    recording_ = std::make_unique<ServedRecording>(0, "run.gmt", backend_, [] {});
    recording_->Load(ServedRecording::Keep::kNothing);
    const absl::Status status =
        recording_->Examine([&](const answers::Recording& recorded, Questions& questions) {
          file_.recording = &recorded;
          file_.questions = &questions;
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    file_.index = recording_->index();
    file_.meta = recording_->meta();
  }

  uint64_t events() const { return file_.index->events(); }
  absl::StatusOr<StandalonePage> Export(uint64_t max_bytes) const {
    return MakeStandalonePage(Page(), "1.0", {file_}, nlohmann::ordered_json::object(), max_bytes);
  }

 private:
  Backend backend_;
  std::unique_ptr<ServedRecording> recording_;
  StandaloneFile file_;
};

std::unique_ptr<answers::Recording> DataOf(analysis::EventScript& script, analysis::Trace trace) {
  return answers::RecordingSoFar("run.gmt", std::move(trace), script.definitions());
}

// A training loop on a caching allocator.
std::unique_ptr<answers::Recording> TrainingLoop(uint64_t events) {
  analysis::EventScript script;
  std::vector<uint32_t> stacks = {0};
  for (uint32_t i = 1; i <= format::AllocatorTrace::kStacks; ++i) {
    stacks.push_back(
        script.Stack({absl::StrCat("layer", i), absl::StrCat("block", i % 40), "main"}));
  }
  const uint32_t driver = script.Alloc(0x1000, 512).heap;
  const uint32_t pytorch = script.Block(0x1000, 512).heap;
  analysis::TraceBuilder builder(script.definitions());
  builder.OnHeader({}).IgnoreError();
  format::AllocatorTrace loop(1);
  constexpr uint64_t kPart = 100'000;
  for (uint64_t done = 0; done < events; done += kPart) {
    format::EventBatch batch;
    for (uint64_t i = done; i < std::min(events, done + kPart); ++i) {
      format::Event& event = batch.events.emplace_back(loop.Next());
      event.heap = event.memory == BLOCK ? pytorch : driver;
      event.stack = stacks[event.stack];
    }
    builder.OnEvents(batch).IgnoreError();
  }
  return DataOf(script, std::move(builder).Build());
}

std::unique_ptr<answers::Recording> BlocksOfManySizes() {
  analysis::EventScript script;
  script.Alloc(0x10000000, uint64_t{1} << 36, {"segment"});
  for (uint64_t i = 0; i < 20'000; ++i) {
    script.Block(0x10000000 + i * (1 << 20), 512 * (1 + i * 7919 % 1999), {"f", "main"});
    if (i % 3 == 0) script.FreeBlock(0x10000000 + i * (1 << 20));
  }
  return DataOf(script, script.Build());
}

TEST(StandalonePageTest, MillionEventsFitIntoFiveMegabytes) {
  const Exported exported(TrainingLoop(1'000'000));
  ASSERT_GT(exported.events(), 990'000u);
  const auto page = exported.Export(DefaultStandaloneSize(exported.events()));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_LE(page->html.size(), 5'000'000u);
  // Useful in practice: most blocks are included, and times are as exact as a screen can show.
  EXPECT_GT(page->blocks, page->omitted_blocks);
  EXPECT_LT(page->time_error_ns, 100'000);
  RecordProperty("bytes", static_cast<int>(page->html.size()));
  RecordProperty("blocks", static_cast<int>(page->blocks));
  RecordProperty("omitted_blocks", static_cast<int>(page->omitted_blocks));
}

TEST(StandalonePageTest, KeepsEverythingThatFits) {
  const auto page = Exported(BlocksOfManySizes()).Export(5'000'000);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->blocks, 20'001u);  // including their segment
  EXPECT_EQ(page->omitted_blocks, 0u);
  EXPECT_EQ(page->smaller_than, 0u);
  EXPECT_EQ(page->time_error_ns, 0);
}

TEST(StandalonePageTest, LeavesOutTheSmallestBlocks) {
  const Exported exported(BlocksOfManySizes());
  const uint64_t whole = exported.Export(5'000'000)->html.size();
  uint64_t blocks_before = 20'001;
  for (const double share : {0.8, 0.5, 0.2}) {
    const auto limit =
        Page().size() + 20'000 +
        static_cast<uint64_t>(static_cast<double>(whole - Page().size() - 20'000) * share);
    const auto page = exported.Export(limit);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->html.size(), limit);
    EXPECT_EQ(page->blocks + page->omitted_blocks, 20'001u);
    EXPECT_LT(page->blocks, blocks_before);
    EXPECT_GT(page->smaller_than, 512u);
    blocks_before = page->blocks;
  }
}

TEST(StandalonePageTest, ErrorStatesTheRequiredSize) {
  const Exported exported(BlocksOfManySizes());
  const auto refused = exported.Export(100'000);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string said(refused.status().message());
  constexpr char kBefore[] = "even without blocks the page needs ";
  ASSERT_THAT(said, HasSubstr(kBefore));
  const size_t at = said.find(kBefore) + sizeof(kBefore) - 1;
  double megabytes = 0;
  ASSERT_TRUE(absl::SimpleAtod(said.substr(at, said.find(' ', at) - at), &megabytes)) << said;
  const auto page = exported.Export(static_cast<uint64_t>(megabytes * 1e6));
  EXPECT_TRUE(page.ok()) << page.status();
}

TEST(StandalonePageTest, DefaultGrowsWithTheRecordingUpToTheMailLimit) {
  EXPECT_EQ(DefaultStandaloneSize(10), 5'000'000u);
  EXPECT_EQ(DefaultStandaloneSize(1'000'000), 5'000'000u);
  EXPECT_EQ(DefaultStandaloneSize(2'000'000), 10'000'000u);
  EXPECT_EQ(DefaultStandaloneSize(100'000'000), 20'000'000u);
}

}  // namespace
}  // namespace gmt::viewer
