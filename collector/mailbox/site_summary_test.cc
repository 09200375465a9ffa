#include "collector/mailbox/site_summary.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/definitions_builder.h"

namespace gmt::control {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Returns a summary with stack 1 (train.py:12 train <- main) and stack 2 (main).
SiteSummary SummaryWithNames() {
  format::DefinitionsBuilder builder;
  const auto frame = [&](const char* function, uint32_t line) {
    format::FrameInfo info;
    info.function = builder.InternString(function);
    info.file = builder.InternString("/home/train.py");
    info.line = line;
    info.language = format::Language::kPython;
    info.flags = format::kFrameHasFunction | format::kFrameHasFile | format::kFrameHasLine;
    return builder.InternFrame(info);
  };
  const uint32_t train = frame("train", 12), main = frame("main", 30);
  builder.InternStack({train, main}, 0);
  SiteSummary summary;
  NameChunk chunk;
  chunk.definitions = builder.TakeNew();
  summary.AddNames(std::move(chunk));
  return summary;
}

std::shared_ptr<const Copy> CopyAt(int64_t t_ns, std::vector<SiteRow> sites) {
  auto copy = std::make_shared<Copy>();
  copy->status.set_t_ns(t_ns);
  HeapStatus* heap = copy->status.add_heaps();
  heap->set_heap("driver");
  heap->set_device(1);
  copy->sites = std::move(sites);
  return copy;
}

Subscribe TopRequest(TopOrder order, uint32_t rows = 10) {
  Subscribe subscription;
  subscription.set_order(order);
  subscription.set_rows(rows);
  return subscription;
}

SiteRow Row(uint32_t stack, uint64_t live, uint64_t allocations = 1) {
  SiteRow row;
  row.stack = stack;
  row.live_bytes = live;
  row.live_count = 1;
  row.allocations = allocations;
  return row;
}

TEST(SiteSummaryTest, SitesHaveTheirHeapAndTheFramesOfTheirStack) {
  SiteSummary summary = SummaryWithNames();
  summary.Take(CopyAt(0, {Row(1, 10), Row(2, 30)}));
  const Top top = summary.MakeTop(TopRequest(BY_LIVE));
  ASSERT_EQ(top.sites_size(), 2);
  EXPECT_EQ(top.sites(0).live_bytes(), 30u);
  EXPECT_EQ(top.sites(0).heap(), "driver");
  EXPECT_EQ(top.sites(0).device(), 1u);
  ASSERT_EQ(top.sites(1).frames_size() + top.sites(0).frames_size(), 3);
  const Site& deeper = top.sites(top.sites(0).frames_size() == 2 ? 0 : 1);
  EXPECT_EQ(deeper.frames(0).function(), "train");
  EXPECT_EQ(deeper.frames(0).line(), 12u);
  EXPECT_TRUE(deeper.frames(0).python());
}

TEST(SiteSummaryTest, GrowthAndRateAreRelativeToAnEarlierCopy) {
  SiteSummary summary = SummaryWithNames();
  summary.Take(CopyAt(0, {Row(1, 100, 10), Row(2, 900, 10)}));
  summary.Take(CopyAt(30 * kSecondNs, {Row(1, 150, 40), Row(2, 800, 10)}));
  const Top top = summary.MakeTop(TopRequest(BY_GROWTH));
  ASSERT_EQ(top.sites_size(), 2);
  EXPECT_EQ(top.sites(0).stack(), 1u);
  EXPECT_EQ(top.sites(0).growth_bytes(), 50);
  EXPECT_EQ(top.sites(0).growth_ns(), static_cast<uint64_t>(30 * kSecondNs));
  EXPECT_DOUBLE_EQ(top.sites(0).allocations_per_second(), 1.0);
  EXPECT_EQ(top.sites(1).growth_bytes(), -100);
}

TEST(SiteSummaryTest, GrowthIsOverTwoMinutesAtMost) {
  SiteSummary summary = SummaryWithNames();
  for (int64_t second = 0; second <= 600; ++second) {
    summary.Take(CopyAt(second * kSecondNs, {Row(1, static_cast<uint64_t>(second))}));
    const Top top = summary.MakeTop(TopRequest(BY_LIVE));
    EXPECT_LE(top.sites(0).growth_ns(), static_cast<uint64_t>(2 * SiteSummary::kWindowNs));
    EXPECT_EQ(top.sites(0).growth_bytes(),
              static_cast<int64_t>(top.sites(0).growth_ns()) / kSecondNs);
    if (second < 60) continue;
    EXPECT_GE(top.sites(0).growth_ns(), static_cast<uint64_t>(SiteSummary::kWindowNs));
  }
}

TEST(SiteSummaryTest, SitesThatDifferOnlyInTheForwardStackAreMerged) {
  SiteSummary summary = SummaryWithNames();
  summary.Take(CopyAt(0, {Row(1, 10, 3), Row(1, 5, 4)}));
  const Top top = summary.MakeTop(TopRequest(BY_LIVE));
  ASSERT_EQ(top.sites_size(), 1);
  EXPECT_EQ(top.sites(0).live_bytes(), 15u);
  EXPECT_EQ(top.sites(0).allocations(), 7u);
}

TEST(SiteSummaryTest, RowsAreLimitedAndAllSitesAreCounted) {
  SiteSummary summary;
  std::vector<SiteRow> rows;
  for (uint32_t i = 1; i <= 1000; ++i) rows.push_back(Row(i, i));
  summary.Take(CopyAt(0, rows));
  const Top top = summary.MakeTop(TopRequest(BY_LIVE, 3));
  ASSERT_EQ(top.sites_size(), 3);
  EXPECT_EQ(top.sites_in_all(), 1000u);
  EXPECT_EQ(top.sites(2).live_bytes(), 998u);
}

TEST(SiteSummaryTest, NewRecordingDiscardsTheNames) {
  SiteSummary summary = SummaryWithNames();
  NameChunk chunk;
  chunk.is_new_recording = true;
  summary.AddNames(std::move(chunk));
  summary.Take(CopyAt(0, {Row(1, 10)}));
  EXPECT_EQ(summary.MakeTop(TopRequest(BY_LIVE)).sites(0).frames_size(), 0);
}

}  // namespace
}  // namespace gmt::control
