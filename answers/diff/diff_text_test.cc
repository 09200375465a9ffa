#include "answers/diff/diff_text.h"

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

using analysis::Comparison;
using analysis::EventScript;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DiffTextTest : public ::testing::Test {
 protected:
  DiffTextTest() {
    source_.base_file = "base.gmt";
    source_.new_file = "new.gmt";
  }

  Comparison Compare(analysis::DiffOptions options = {}) {
    const analysis::Trace base = base_.Build(), changed = new_.Build();
    const analysis::Examination before(base, base_.definitions()),
        after(changed, new_.definitions());
    return analysis::Compare(before, analysis::Categorize(before), after,
                             analysis::Categorize(after), options)
        .value();
  }
  std::string Text(size_t top = 0) { return DiffText(Compare(), source_, top, Terminal{}); }
  std::string Markdown(size_t top = 0) { return DiffMarkdown(Compare(), source_, top); }
  nlohmann::json Json() { return nlohmann::json::parse(DiffJson(Compare(), source_)); }
  void FailAbove(const char* limit) { source_.limit = *ParseLimit(limit); }

  // 100 MiB in both; 40 MiB more at `forward` in the new one.
  void Grow() {
    for (EventScript* script : {&base_, &new_}) script->Alloc(0x10000000, 100 * kMiB, {"load"});
    base_.Alloc(0x20000000, 20 * kMiB, {"forward", "main"});
    new_.Alloc(0x20000000, 60 * kMiB, {"forward", "main"});
  }

  // Expects that each column adds up to "total", within the precision of three digits.
  static void ExpectAddsUp(const std::string& text) {
    std::istringstream lines(text);
    double sums[3] = {0, 0, 0};
    bool in_table = false;
    int tables = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("change") != std::string::npos && line.find("base") != std::string::npos) {
        in_table = true;
        continue;
      }
      if (!in_table) continue;
      std::istringstream words(line);
      double row[3] = {0, 0, 0};
      bool is_row = true;
      for (double& column : row) {
        std::string number, unit;
        if (!(words >> number)) is_row = false;
        if (number == "-" || !is_row) continue;
        words >> unit;
        if (unit.find('B') == std::string::npos) {
          is_row = false;
          break;
        }
        column = (number[0] == '-' ? -1 : 1) * BytesOf(std::abs(std::stod(number)), unit);
      }
      if (!is_row) continue;
      const bool is_total = line.size() > 5 && line.substr(line.size() - 5) == "total";
      for (int i = 0; i < 3; ++i) {
        if (is_total) {
          EXPECT_NEAR(sums[i], row[i], std::max(std::abs(row[1]), std::abs(row[2])) * 0.02 + 1)
              << text;
        }
        sums[i] += row[i];
      }
      if (is_total) in_table = false, ++tables;
    }
    EXPECT_EQ(tables, 1) << text;
  }
  static void ExpectFitsAScreen(const std::string& text) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }

  EventScript base_, new_;
  DiffSource source_;
};

TEST_F(DiffTextTest, DifferencesThatAreNotShownAreCounted) {
  Grow();
  Comparison comparison = Compare();
  comparison.differences = {"a", "b", "c", "d", "e"};
  EXPECT_THAT(DiffText(comparison, source_, 0, Terminal{}), HasSubstr("and 1 more difference;"));
  comparison.differences.push_back("f");
  EXPECT_THAT(DiffText(comparison, source_, 0, Terminal{}), HasSubstr("and 2 more differences;"));
}

TEST_F(DiffTextTest, FirstLineHasTheChangeAndTheTotals) {
  Grow();
  EXPECT_THAT(Text(), StartsWith("GPU 0: +40.0 MiB (+33.3 %), 120 MiB -> 160 MiB allocated\n"
                                 "at the peaks, 2.00 ms and 2.00 ms\n"));
}

TEST_F(DiffTextTest, LimitIsPartOfTheVerdict) {
  Grow();
  FailAbove("2%");
  EXPECT_THAT(Text(), HasSubstr("allocated; FAIL, the limit is 2 %\n"));
  EXPECT_TRUE(HasFailed(Compare(), source_));
  FailAbove("40MiB");
  EXPECT_THAT(Text(), HasSubstr("; passes the limit of 40.0 MiB\n"));
  EXPECT_FALSE(HasFailed(Compare(), source_));
  FailAbove("34%");
  EXPECT_FALSE(HasFailed(Compare(), source_));
}

TEST_F(DiffTextTest, LessIsNeverAboveALimit) {
  Grow();
  std::swap(base_, new_);
  FailAbove("0%");
  EXPECT_FALSE(HasFailed(Compare(), source_));
  EXPECT_THAT(Text(), StartsWith("GPU 0: -40.0 MiB (-25.0 %)"));
}

TEST_F(DiffTextTest, PeakThatGrewElsewhereFailsToo) {
  for (EventScript* script : {&base_, &new_}) {
    script->Alloc(0x10000000, 100 * kMiB, {"load"});
    if (script == &new_) script->Alloc(0x90000000, 50 * kMiB, {"warm_up"});
    if (script == &new_) script->Free(0x90000000);
    for (uint64_t i = 1; i < 6; ++i) {
      script->Mark("step", i);
      script->Alloc(0x20000000, 10 * kMiB, {"forward"});
      script->Free(0x20000000);
    }
  }
  FailAbove("5%");
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("GPU 0: no change, 110 MiB allocated; FAIL, the peak grew by more "
                               "than 5 %\n"));
  EXPECT_THAT(text, HasSubstr("Peaks of the whole recordings: 110 MiB -> 150 MiB (+40.0 MiB).\n"));
}

TEST_F(DiffTextTest, LimitIgnoresHostMemory) {
  base_.Pinned(0x1000, kMiB, {"loader"});
  new_.Pinned(0x1000, 3 * kMiB, {"loader"});
  FailAbove("1%");
  EXPECT_FALSE(HasFailed(Compare(), source_));
  EXPECT_THAT(Text(), StartsWith("host: +2.00 MiB"));
}

TEST_F(DiffTextTest, ColumnsAddUpAndFitAScreen) {
  Grow();
  for (uint64_t i = 1; i <= 40; ++i) {
    const std::string name =
        "a_function_with_a_name_that_is_too_long_for_a_line_" + std::to_string(i);
    if (i % 3 != 0) base_.Alloc(i << 32, i * kMiB, {name, "main"});
    if (i % 3 != 1) new_.Alloc(i << 32, (i + i % 5) * kMiB, {name, "main"});
    new_.Alloc((i << 32) + 0x80000000, i * kMiB, {"gpu"}).device = static_cast<uint32_t>(i % 8);
  }
  source_.base_lacks = source_.new_lacks = {"one", "two"};
  const std::string text = Text();
  ExpectFitsAScreen(text);
  ExpectAddsUp(text);
  ExpectAddsUp(Text(1));
  ExpectAddsUp(Text(1000));
}

TEST_F(DiffTextTest, RowHasChangePlaceAndId) {
  Grow();
  const std::string id = "stack/" + std::to_string(new_.Stack({"forward", "main"}));
  EXPECT_THAT(
      Text(),
      HasSubstr("+40.0 MiB  20.0 MiB  60.0 MiB            1  forward (forward.py:10)   " + id));
  EXPECT_THAT(Text(), HasSubstr("Next: gpumemtrace show new.gmt " + id + "\n"));
}

TEST_F(DiffTextTest, StackOnlyInTheBaseIsShownFromTheBase) {
  base_.Alloc(0x1000000, kMiB, {"gone"});
  new_.Alloc(0x1000000, 1, {"young"});
  EXPECT_THAT(Text(), HasSubstr("gpumemtrace show base.gmt stack/"));
  EXPECT_THAT(Text(), HasSubstr("1 new stack, 1 gone\n"));
}

TEST_F(DiffTextTest, SameRecordingHasNoChange) {
  Grow();
  new_ = base_;
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("GPU 0: no change, 120 MiB allocated\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpumemtrace show")));
  EXPECT_TRUE(Json()["rows"].empty());
}

TEST_F(DiffTextTest, EmptyRecordingsSaySo) {
  EXPECT_THAT(Text(), StartsWith("Neither recording holds any memory"));
  EXPECT_THAT(Markdown(), StartsWith("**GPU memory: neither recording holds any.**"));
  EXPECT_EQ(Json()["delta_bytes"], 0);
}

TEST_F(DiffTextTest, MarkdownHasTheVerdictFirstAndTheRestFolded) {
  Grow();
  FailAbove("2%");
  const std::string text = Markdown();
  EXPECT_THAT(text, StartsWith("**GPU memory, GPU 0: +40.0 MiB (+33.3 %), 120 MiB -> 160 MiB "
                               "allocated; FAIL, the limit is 2 %**\n"));
  EXPECT_THAT(text, HasSubstr("| +40.0 MiB | 20.0 MiB | 60.0 MiB | `forward (forward.py:10)` |\n"));
  EXPECT_LT(text.find("| change |"), text.find("<details>"));
  EXPECT_THAT(text, HasSubstr("- 100 MiB of 1 stack unchanged\n"));
}

TEST_F(DiffTextTest, NamesAreEscapedInMarkdown) {
  new_.Alloc(0x1000000, kMiB, {"a|b`c<details>\n# big"});
  const std::string text = Markdown();
  EXPECT_THAT(text, HasSubstr("`a\\|b'c<details> # big (a\\|b'c<details> # big.py:10)`"));
}

TEST_F(DiffTextTest, JsonAddsUpAndBeginsWithItsSchema) {
  Grow();
  EXPECT_THAT(DiffJson(Compare(), source_),
              StartsWith(R"({"schema":"gpumemtrace.diff/1","file":"new.gmt")"));
  const nlohmann::json json = Json();
  int64_t sum = 0;
  for (const auto& row : json["rows"]) sum += row["delta_bytes"].get<int64_t>();
  EXPECT_EQ(sum, json["delta_bytes"]);
  EXPECT_EQ(json["new_bytes"].get<int64_t>() - json["base_bytes"].get<int64_t>(), sum);
  EXPECT_EQ(json["failed"], false);
  EXPECT_EQ(json["rows"][0]["frames"][0]["function"], "forward");
}

}  // namespace
}  // namespace gmt::answers
