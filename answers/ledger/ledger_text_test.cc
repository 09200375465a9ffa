#include "answers/ledger/ledger_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/testing/event_script.h"
#include "answers/testing/written_bytes.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kOurs = 12;

class LedgerTextTest : public ::testing::Test {
 protected:
  LedgerTextTest() {
    script_.pid = kOurs;
    source_.file = "run.gmt";
  }

  std::vector<analysis::Ledger> Ledgers(const std::string& at = "end") {
    trace_ = script_.Build();
    const analysis::Examination examination(trace_, script_.definitions());
    return analysis::MakeLedgers(examination, {*analysis::ParseAt(at), {}}).value();
  }
  std::string Text(size_t top = 0) { return LedgerText(Ledgers(), source_, top, Terminal{}); }

  gmt::Sample& Nvml(uint64_t used, uint64_t ours) {
    gmt::Sample& sample = script_.Sample(used * kMiB, 24576 * kMiB);
    sample.set_source("nvml");
    Holds(sample, kOurs, ours);
    return sample;
  }
  static void Holds(gmt::Sample& sample, uint64_t pid, uint64_t mib, const std::string& name = "") {
    auto* process = sample.add_processes();
    process->set_pid(pid);
    process->set_bytes(mib * kMiB);
    process->set_name(name);
  }
  // Blocks, a cached segment, a hole, a library's memory, another process, and an unexplained rest.
  void Everything() {
    script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
    script_.Block(0x10000000, 5 * kMiB, {"forward"});
    script_.Alloc(0x20000000, 40 * kMiB, {"segment"});
    script_.Block(0x20000000, 40 * kMiB, {"forward"});
    script_.FreeBlock(0x20000000);
    script_.Alloc(0x40000000, 7 * kMiB, {"knn_build"});
    Holds(Nvml(600, 367), 77, 200, "python");
  }

  // Expects that rows add up to the sums below them, within the precision of three digits.
  static void ExpectAddsUp(const std::string& text) {
    std::istringstream lines(text);
    double rows = 0;
    int sums = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      double number = 0;
      std::string unit;
      if (line.empty() || line[0] != ' ' || !(words >> number >> unit)) continue;
      const double bytes = BytesOf(number, unit);
      if (line.find("  = ") == std::string::npos) {
        rows += bytes;
        continue;
      }
      EXPECT_NEAR(rows, bytes, std::max(rows, bytes) * 0.02 + 1) << line << "\n" << text;
      ++sums;
    }
    EXPECT_GT(sums, 0) << text;
  }
  static void ExpectFitsAScreen(const std::string& text) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
  LedgerSource source_;
};

TEST_F(LedgerTextTest, FirstLineHasTheTotalAndItsParts) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000, 5 * kMiB, {"forward"});
  Holds(Nvml(600, 350), 77, 250, "python");
  EXPECT_THAT(Text(), StartsWith("GPU 0 uses 600 MiB: 5.00 MiB live, 15.0 MiB unused, 330 MiB "
                                 "outside, 250 MiB others; all explained\n"));
}

TEST_F(LedgerTextTest, FirstLineLeavesOutTheSmallestPartIfTooLong) {
  Everything();
  EXPECT_THAT(Text(), StartsWith("GPU 0 uses 600 MiB: 5.00 MiB live, 307 MiB outside, 200 MiB "
                                 "others; 33.0 MiB unexplained\n"));
}

TEST_F(LedgerTextTest, RowsAddUpToTheirSums) {
  Everything();
  ExpectAddsUp(Text());
  ExpectAddsUp(Text(1));
}

TEST_F(LedgerTextTest, ManyRowsFitAScreenAndAddUp) {
  Everything();
  for (uint64_t i = 1; i <= 40; ++i) {
    const std::string name =
        "a_function_with_a_name_that_is_too_long_for_one_line_" + std::to_string(i);
    script_.Alloc(i << 32, i * kMiB, {name});
  }
  gmt::Sample& sample = Nvml(9000, 1200);
  for (uint64_t i = 100; i < 120; ++i) Holds(sample, i, 300, "a_process_with_a_long_name");
  sample.set_reserved_bytes(30 * kMiB);
  source_.lacks = {"one", "two", "three", "four"};
  const std::string text = Text();
  ExpectFitsAScreen(text);
  ExpectAddsUp(text);
}

TEST_F(LedgerTextTest, UnexplainedIsNegativeIfLessIsReportedThanRecorded) {
  script_.Alloc(0x10000000, 200 * kMiB);
  Nvml(150, 150);
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("GPU 0 uses 150 MiB: 200 MiB its own; -50.0 MiB unexplained"));
  EXPECT_THAT(text, HasSubstr("more was recorded than the driver reports"));
}

TEST_F(LedgerTextTest, ReadingOfAnotherMomentIsPrinted) {
  Nvml(320, 320);
  for (int i = 0; i < 3; ++i) script_.Alloc(0x10000000 << i, 20 * kMiB);
  EXPECT_THAT(Text(), HasSubstr("at end, 4.00 ms; NVML reported 320 MiB 3.00 ms earlier, recorded "
                                "since then +60.0 MiB\n"));
}

TEST_F(LedgerTextTest, WithoutAReadingTheTotalIsALowerBound) {
  script_.Alloc(0x10000000, 20 * kMiB);
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("GPU 0 uses at least 20.0 MiB: 20.0 MiB its own; the driver was not "
                               "queried\n"));
  EXPECT_THAT(text, HasSubstr("Not known: the driver's figures. To see why it was not queried: "
                              "gpumemtrace info run.gmt\n"));
  EXPECT_THAT(text, Not(HasSubstr("unexplained")));
}

TEST_F(LedgerTextTest, NextCommandIsForTheLargestUnclearPart) {
  Everything();
  EXPECT_THAT(Text(), HasSubstr("Next: gpumemtrace frag run.gmt --at end\n"));
  script_.Alloc(0x80000000, 700 * kMiB, {"knn_build"});
  EXPECT_THAT(Text(), HasSubstr("Next: gpumemtrace show run.gmt stack/"));
}

TEST_F(LedgerTextTest, OtherDevicesHaveALineEach) {
  Everything();
  script_.Alloc(0x90000000, kMiB).device = 1;
  EXPECT_THAT(Text(), HasSubstr("\nGPU 1 uses at least 1.00 MiB"));
}

TEST_F(LedgerTextTest, EmptyRecordingSaysSo) {
  EXPECT_THAT(Text(), StartsWith("No GPU memory was held"));
}

TEST_F(LedgerTextTest, JsonAddsUpAndBeginsWithItsSchema) {
  Everything();
  const std::string text = LedgerJson(Ledgers(), source_);
  EXPECT_THAT(text, StartsWith(R"({"schema":"gpumemtrace.ledger/1","file":"run.gmt")"));
  const auto json = nlohmann::json::parse(text);
  int64_t sum = json["unexplained_bytes"];
  for (const auto& row : json["rows"]) sum += row["bytes"].get<int64_t>();
  EXPECT_EQ(sum, json["driver_used_bytes"]);
  EXPECT_EQ(json["devices"].size(), 1u);
  EXPECT_EQ(json["devices"][0]["rows"], json["rows"]);
  EXPECT_EQ(json["source"], "nvml");
}

TEST_F(LedgerTextTest, JsonOfAnEmptyRecordingHasTheContractsKeys) {
  const auto json = nlohmann::json::parse(LedgerJson(Ledgers(), source_));
  EXPECT_EQ(json["driver_used_bytes"], 0);
  EXPECT_TRUE(json["rows"].empty());
}

}  // namespace
}  // namespace gmt::answers
