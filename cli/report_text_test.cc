#include "cli/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/event_script.h"

namespace gmt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kMiB = 1 << 20;

double BytesOf(double number, const std::string& unit) {
  for (const auto& [name, factor] :
       {std::pair("B", 1.), {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}}) {
    if (unit == name) return number * factor;
  }
  ADD_FAILURE() << "no unit: " << unit;
  return 0;
}

class ReportTextTest : public ::testing::Test {
 protected:
  analysis::Report Report(analysis::ReportOptions options = {}) {
    trace_ = script_.Build();
    return analysis::MakeReport(trace_, script_.definitions(), options).value();
  }
  std::string Text(size_t top = 10, const std::vector<std::string>& lacks = {}) {
    return ReportText(Report(), lacks, top, Terminal{});
  }
  // Adds up the table that a person reads: rows against "total", within what three digits can hold.
  static void ExpectAddsUp(const std::string& text) {
    std::istringstream lines(text);
    double rows = 0, shares = 0, count = 0;
    bool in_table = false;
    int tables = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("bytes  share") != std::string::npos) {
        rows = shares = count = 0, in_table = true;
        continue;
      }
      if (const size_t tiny = line.find("<1 %"); tiny != std::string::npos)
        line.replace(tiny, 2, " 0");
      std::istringstream words(line);
      double number = 0, share = 0, pieces = 0;
      std::string unit, percent;
      if (!in_table || !(words >> number >> unit >> share >> percent >> pieces)) continue;
      if (line.size() > 5 && line.substr(line.size() - 5) == "total") {
        const double total = BytesOf(number, unit);
        EXPECT_NEAR(rows, total, total * 0.02 + 1) << text;
        EXPECT_NEAR(shares, 100, 8) << text;
        EXPECT_EQ(count, pieces) << text;
        in_table = false;
        ++tables;
      }
      rows += BytesOf(number, unit), shares += share, count += pieces;
    }
    EXPECT_GT(tables, 0) << text;
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
};

TEST_F(ReportTextTest, FirstLineSaysHowMuchWhereWhenAndFromHowManyStacks) {
  script_.Alloc(0x10000000, 3 * kMiB, {"load", "main"});
  script_.Alloc(0x20000000, kMiB, {"step", "main"});
  EXPECT_THAT(Text(), StartsWith("peak 4.00 MiB on GPU 0 at 2.00 ms, 100 % from 2 stacks\n"));
}

TEST_F(ReportTextTest, OtherMomentsAreCalledLive) {
  script_.Alloc(0x10000000, 3 * kMiB, {"load"});
  analysis::ReportOptions options;
  options.at = *analysis::ParseAt("end");
  EXPECT_THAT(ReportText(Report(options), {}, 10, Terminal{}),
              StartsWith("live 3.00 MiB on GPU 0 at end (1.00 ms)"));
}

TEST_F(ReportTextTest, TablesAddUpWithManyRowsOthersAndUnknown) {
  for (uint64_t i = 1; i <= 40; ++i) {
    script_.Alloc(i << 32, i * 100'003, {"f" + std::to_string(i), "main"}).device = i % 2;
  }
  script_.Alloc(uint64_t{99} << 32, kMiB);
  script_.Pinned(0x5000, 12345);
  ExpectAddsUp(Text(10));
  ExpectAddsUp(Text(1));
  ExpectAddsUp(Text(1000));
}

TEST_F(ReportTextTest, TablesAddUpWithBlocksInSegments) {
  script_.Alloc(uint64_t{1} << 32, 20 * kMiB, {"segment"});
  script_.Block(uint64_t{1} << 32, 5 * kMiB, {"forward"});
  script_.Block((uint64_t{1} << 32) + 5 * kMiB, 3 * kMiB);
  const std::string text = Text();
  ExpectAddsUp(text);
  EXPECT_THAT(text, HasSubstr("pytorch: live 8.00 MiB"));
  EXPECT_THAT(text, HasSubstr("reserved 20.0 MiB"));
}

TEST_F(ReportTextTest, RowShowsTheLineItsCallersAndItsId) {
  script_.Alloc(0x1000, kMiB, {"cudaMalloc", "load", "main"});
  const std::string id = "stack/" + std::to_string(script_.Stack({"cudaMalloc", "load", "main"}));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("load (load.py:10)   " + id));
  EXPECT_THAT(text, HasSubstr("< main (main.py:10)"));
  EXPECT_THAT(text, Not(HasSubstr("cudaMalloc")));
}

TEST_F(ReportTextTest, WhatIsNotKnownStandsAtTheEnd) {
  script_.Alloc(0x1000, kMiB);
  const std::string text = Text(10, {"3 events lost"});
  EXPECT_THAT(text, HasSubstr("no stack was recorded"));
  EXPECT_THAT(text, HasSubstr("\nNot known\n  1.00 MiB without a stack\n  3 events lost\n"));
}

TEST_F(ReportTextTest, EmptyRecordingSaysSo) {
  EXPECT_THAT(Text(), StartsWith("no memory was held"));
}

TEST_F(ReportTextTest, JsonHasTheSchemaFirstAndIntegerBytes) {
  script_.Alloc(0x1000, kMiB, {"load", "main"});
  script_.Pinned(0x5000, 100);
  const std::string text = ReportJson(Report(), "run.gmt", {}, 10);
  EXPECT_THAT(text, StartsWith(R"({"schema":"gpumemtrace.report/1","file":"run.gmt")"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["devices"][0]["heaps"][0]["peak_live_bytes"], kMiB);
  EXPECT_TRUE(json["devices"][0]["heaps"][0]["reserved_bytes"].is_null());
  EXPECT_TRUE(json["devices"][1]["index"].is_null());
  EXPECT_EQ(json["rows"][0]["frames"][0]["function"], "load");
  EXPECT_EQ(json["rows"][0]["frames"][0]["line"], 10);
  EXPECT_EQ(json["unknown_bytes"], 100);
}

TEST_F(ReportTextTest, JsonRowsThatAreNotShownAreSummedUp) {
  for (uint64_t i = 1; i <= 5; ++i) script_.Alloc(i << 32, i, {"f" + std::to_string(i)});
  const auto json = nlohmann::json::parse(ReportJson(Report(), "run.gmt", {}, 2));
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["other_rows"]["rows"], 3);
  EXPECT_EQ(json["other_rows"]["bytes"], 1 + 2 + 3);
}

TEST_F(ReportTextTest, NameThatIsNoUtf8StaysValidJson) {
  script_.Alloc(0x1000, kMiB, {"\xff\xfe"});
  EXPECT_TRUE(nlohmann::json::accept(ReportJson(Report(), "run.gmt", {}, 10)));
}

}  // namespace
}  // namespace gmt::cli
