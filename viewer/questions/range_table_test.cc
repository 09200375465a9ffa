// Compares tables of ranges of random recordings with sums over all rows.

#include "viewer/questions/range_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/names.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr uint32_t kBys = RangeQuery::kStream + 1;

struct SlowRow {
  uint64_t bytes = 0, inclusive = 0, allocations = 0, end_bytes = 0;
  int64_t growth = 0;
  double byte_ns = 0;
};

class SlowRanges {
 public:
  explicit SlowRanges(uint32_t seed)
      : made(seed, 300),
        examination(made.trace(), made.definitions()),
        recording(examination, made.lanes()),
        rows(made.trace().rows) {
    recording.MakeKinds(1 + made.Any(100));
  }

  RangeQuery AnyQuery() {
    RangeQuery query;
    query.lane = made.Any(static_cast<uint32_t>(recording.lanes.size()));
    query.from = made.Any(made.trace().last_step() + 1);
    query.to = query.from + made.Any(made.trace().last_step() + 1 - query.from);
    query.by = static_cast<RangeQuery::By>(made.Any(kBys));
    query.folded = made.Any(2) == 0;
    query.limit = kMaxTableRows;
    if (made.Any(3) == 0) query.filter.stream = made.Any(2) == 0 ? "unknown" : "0x1";
    if (made.Any(3) == 0) query.filter.min_size = 512 * made.Any(300);
    if (made.Any(3) == 0) query.filter.max_size = 512 * made.Any(300);
    if (made.Any(4) == 0) query.filter.text = "forward";
    return query;
  }

  uint32_t PeakOf(const RangeQuery& query) {
    uint32_t peak = query.from;
    uint64_t most = 0;
    for (uint32_t event = query.from; event <= query.to; ++event) {
      uint64_t bytes = 0;
      for (RowId row = 0; row < rows.count(); ++row) {
        if (recording.IsIn(recording.lanes[query.lane], row) && rows.HeldAfter(row, event)) {
          bytes += rows.size[row];
        }
      }
      if (bytes > most) most = bytes, peak = event;
    }
    return peak;
  }

  std::map<std::string, SlowRow> RowsOf(const RangeQuery& query, uint32_t peak) {
    std::map<std::string, SlowRow> table;
    auto filter = RowFilter::Make(recording, query.filter);
    const analysis::Trace& trace = made.trace();
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.birth[row] > query.to || rows.death[row] <= query.from) continue;
      if (!recording.IsIn(recording.lanes[query.lane], row) || !filter->Matches(row)) continue;
      const auto [own, all] = IdsOf(query, row);
      const uint64_t bytes = rows.HeldAfter(row, peak) ? rows.size[row] : 0;
      SlowRow& of = table[own];
      of.bytes += bytes;
      if (rows.birth[row] > query.from) ++of.allocations;
      const auto size = static_cast<int64_t>(rows.size[row]);
      if (rows.HeldAfter(row, query.to)) of.end_bytes += rows.size[row];
      of.growth +=
          (rows.HeldAfter(row, query.to) ? size : 0) - (rows.HeldAfter(row, query.from) ? size : 0);
      of.byte_ns += static_cast<double>(size) *
                    static_cast<double>(trace.TimeOf(std::min(rows.death[row], query.to)) -
                                        trace.TimeOf(std::max(rows.birth[row], query.from)));
      for (const std::string& id : all) table[id].inclusive += bytes;
    }
    return table;
  }

  // Checks that the rows of each level, and of those below it, add up to `parent`.
  void CheckWithin(const RangeQuery& query, const std::vector<RangeQuery::By>& levels, size_t depth,
                   const RangeRow* parent) {
    RangeQuery level = query;
    level.by = levels[depth];
    const auto table = MakeRangeTable(recording, nullptr, level);
    ASSERT_TRUE(table.ok()) << table.status();
    RangeAmounts total;
    for (const RangeRow& row : table->rows) {
      total.bytes += row.amounts.bytes;
      total.byte_seconds += row.amounts.byte_seconds;
      total.allocations += row.amounts.allocations;
      total.growth += row.amounts.growth;
      total.end_bytes += row.amounts.end_bytes;
      EXPECT_GE(row.inclusive.value_or(row.amounts.bytes), row.amounts.bytes) << row.id;
      if (parent != nullptr && parent->inclusive) {
        EXPECT_LE(row.inclusive.value_or(0), *parent->inclusive) << row.id;
      }
      if (depth + 1 == levels.size()) continue;
      RangeQuery below = level;
      below.within.push_back(row.id);
      CheckWithin(below, levels, depth + 1, &row);
    }
    const RangeAmounts& expected = parent == nullptr ? table->total : parent->amounts;
    EXPECT_EQ(total.bytes, expected.bytes);
    EXPECT_NEAR(total.byte_seconds, expected.byte_seconds, 1e-9 * expected.byte_seconds);
    EXPECT_EQ(total.allocations, expected.allocations);
    EXPECT_EQ(total.growth, expected.growth);
    EXPECT_EQ(total.end_bytes, expected.end_bytes);
    EXPECT_EQ(table->total.bytes, expected.bytes);
  }

  RandomRecording made;
  analysis::Examination examination;
  Recording recording;
  const analysis::Rows& rows;

 private:
  // Returns the id of the row that counts a block, and those that include it.
  std::pair<std::string, std::set<std::string>> IdsOf(const RangeQuery& query, RowId row) {
    const RangeQuery::By by = query.by;
    switch (by) {
      case RangeQuery::kCategory:
        return {"category/0", {}};
      case RangeQuery::kRole:
        return {"role/unknown", {}};
      case RangeQuery::kDtype:
        return {"dtype/unknown", {}};
      case RangeQuery::kStack:
        return {absl::StrCat(
                    "stack/", rows.stack[row],
                    rows.forward_stack[row] == 0 ? "" : absl::StrCat("+", rows.forward_stack[row])),
                {}};
      case RangeQuery::kThread:
        return {"thread/" + ThreadName(rows, row), {}};
      case RangeQuery::kStream:
        return {"stream/" + StreamName(rows, row), {}};
      default:
        break;
    }
    const auto frames = analysis::DescribeStack(made.definitions(), rows.stack[row]);
    const auto forward = analysis::DescribeStack(made.definitions(), rows.forward_stack[row]);
    const auto id_of = [&](const analysis::FrameText& frame) {
      switch (by) {
        case RangeQuery::kModule:
          return absl::StrCat("module/", frame.FileName());
        case RangeQuery::kLine:
          return absl::StrCat("line/", frame.FileName(), ":", frame.line);
        default:
          return absl::StrCat("function/", frame.function, " (", frame.FileName(), ")");
      }
    };
    std::set<std::string> all;
    for (const auto& of_stack : {frames, forward}) {
      for (const auto& frame : of_stack) {
        if (!query.folded || !frame.is_noise()) all.insert(id_of(frame));
      }
    }
    // All frames are Python code of the program: those of a backward pass precede those of the
    // forward pass.
    const auto& owner = frames.empty() ? forward : frames;
    if (const int own = analysis::OwnFrame(owner); own >= 0) {
      const std::string id = id_of(owner[static_cast<size_t>(own)]);
      all.insert(id);
      return {id, all};
    }
    const std::string unknown = by == RangeQuery::kModule     ? "module/unknown"
                                : by == RangeQuery::kFunction ? "function/unknown"
                                                              : "line/unknown";
    all.insert(unknown);
    return {unknown, all};
  }
};

TEST(RangeTableTest, AnyRangeMatchesASumOverAllRows) {
  ForEachSeed(SeedsUpTo(12), [](uint32_t seed) {
    SlowRanges slow(seed);
    for (int i = 0; i < 40; ++i) {
      const RangeQuery query = slow.AnyQuery();
      const auto table = MakeRangeTable(slow.recording, nullptr, query);
      ASSERT_TRUE(table.ok()) << table.status();
      ASSERT_EQ(table->peak_event, slow.PeakOf(query));
      const auto expected = slow.RowsOf(query, table->peak_event);
      ASSERT_EQ(table->rows.size(), expected.size());
      SlowRow total;
      for (const RangeRow& row : table->rows) {
        const auto found = expected.find(row.id);
        ASSERT_NE(found, expected.end()) << row.id;
        const SlowRow& of = found->second;
        EXPECT_EQ(row.amounts.bytes, of.bytes) << row.id;
        EXPECT_EQ(row.amounts.allocations, of.allocations) << row.id;
        EXPECT_EQ(row.amounts.growth, of.growth) << row.id;
        EXPECT_EQ(row.amounts.end_bytes, of.end_bytes) << row.id;
        EXPECT_NEAR(row.amounts.byte_seconds * 1e9, of.byte_ns, 1e-9 * std::abs(of.byte_ns));
        const bool is_by_frame = query.by == RangeQuery::kModule ||
                                 query.by == RangeQuery::kFunction || query.by == RangeQuery::kLine;
        EXPECT_EQ(row.inclusive.has_value(), is_by_frame);
        EXPECT_EQ(row.inclusive.value_or(of.inclusive), of.inclusive) << row.id;
        total.bytes += of.bytes;
        total.allocations += of.allocations;
        total.growth += of.growth;
      }
      EXPECT_EQ(table->total.bytes, total.bytes);
      EXPECT_EQ(table->total.allocations, total.allocations);
      EXPECT_EQ(table->total.growth, total.growth);
    }
  });
}

double MeasureOf(RangeQuery::Sort sort, const RangeAmounts& amounts,
                 std::optional<uint64_t> inclusive, const RangeTotal& total) {
  const double seconds = static_cast<double>(total.to_ns - total.from_ns) / 1e9;
  switch (sort) {
    case RangeQuery::kByteSeconds:
      return amounts.byte_seconds;
    case RangeQuery::kMeanBytes:
      return seconds > 0 ? amounts.byte_seconds / seconds : static_cast<double>(amounts.end_bytes);
    case RangeQuery::kAllocationRate:
      return seconds > 0 ? static_cast<double>(amounts.allocations) / seconds : 0;
    case RangeQuery::kAllocations:
      return static_cast<double>(amounts.allocations);
    case RangeQuery::kGrowth:
      return static_cast<double>(amounts.growth);
    case RangeQuery::kEndBytes:
      return static_cast<double>(amounts.end_bytes);
    case RangeQuery::kInclusive:
      return static_cast<double>(inclusive.value_or(amounts.bytes));
    default:
      return static_cast<double>(amounts.bytes);
  }
}

TEST(RangeTableTest, PagesAreSortedByAnyColumn) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    SlowRanges slow(seed);
    for (uint32_t sort = 0; sort <= RangeQuery::kName; ++sort) {
      RangeQuery query = slow.AnyQuery();
      query.filter = {};
      query.by = RangeQuery::kStack;
      query.sort = static_cast<RangeQuery::Sort>(sort);
      query.descending = slow.made.Any(2) == 0;
      const auto whole = MakeRangeTable(slow.recording, nullptr, query);
      ASSERT_TRUE(whole.ok());
      const auto key = [&](const RangeRow& row) {
        return MeasureOf(query.sort, row.amounts, row.inclusive, *whole);
      };
      for (size_t i = 1; i < whole->rows.size(); ++i) {
        const RangeRow &a = whole->rows[i - 1], &b = whole->rows[i];
        if (query.sort == RangeQuery::kName) {
          EXPECT_TRUE(query.descending ? a.name >= b.name : a.name <= b.name);
        } else {
          EXPECT_TRUE(query.descending ? key(a) >= key(b) : key(a) <= key(b));
        }
      }
      std::vector<std::string> ids, paged;
      for (const RangeRow& row : whole->rows) ids.push_back(row.id);
      query.limit = 3;
      for (query.offset = 0; query.offset < whole->total_rows; query.offset += query.limit) {
        const auto page = MakeRangeTable(slow.recording, nullptr, query);
        for (const RangeRow& row : page->rows) paged.push_back(row.id);
      }
      EXPECT_EQ(paged, ids);
    }
  });
}

// Amounts are those of two tables, and rows are sorted by what the query says.
TEST(RangeTableTest, AnotherRangeHasTheAmountsOfItsOwnTable) {
  ForEachSeed(SeedsUpTo(12), [](uint32_t seed) {
    SlowRanges slow(seed);
    for (int i = 0; i < 40; ++i) {
      RangeQuery query = slow.AnyQuery(), other = slow.AnyQuery();
      const auto alone = MakeRangeTable(slow.recording, nullptr, query);
      RangeQuery of_other = query;
      of_other.from = other.from;
      of_other.to = other.to;
      const auto other_alone = MakeRangeTable(slow.recording, nullptr, of_other);
      query.other = other;
      query.sort = static_cast<RangeQuery::Sort>(slow.made.Any(RangeQuery::kName));
      query.side = static_cast<RangeQuery::Side>(slow.made.Any(RangeQuery::kDifference + 1));
      query.descending = slow.made.Any(2) == 0;
      const auto table = MakeRangeTable(slow.recording, nullptr, query);
      ASSERT_TRUE(table.ok() && alone.ok() && other_alone.ok());
      std::map<std::string, std::pair<RangeRow, RangeRow>> expected;
      for (const RangeRow& row : alone->rows) expected[row.id].first = row;
      for (const RangeRow& row : other_alone->rows) expected[row.id].second = row;
      EXPECT_EQ(table->total_rows, expected.size());
      std::vector<double> sorted;
      for (const RangeRow& row : table->rows) {
        const auto& [here, there] = expected.at(row.id);
        const auto expect_same = [&](const RangeAmounts& a, const RangeAmounts& b) {
          EXPECT_EQ(a.bytes, b.bytes) << row.id;
          EXPECT_DOUBLE_EQ(a.byte_seconds, b.byte_seconds) << row.id;
          EXPECT_EQ(a.allocations, b.allocations) << row.id;
          EXPECT_EQ(a.growth, b.growth) << row.id;
          EXPECT_EQ(a.end_bytes, b.end_bytes) << row.id;
        };
        expect_same(row.amounts, here.amounts);
        ASSERT_TRUE(row.other.has_value());
        expect_same(*row.other, there.amounts);
        EXPECT_EQ(row.other_inclusive.has_value(), row.inclusive.has_value());
        EXPECT_EQ(row.inclusive.value_or(0), here.inclusive.value_or(0)) << row.id;
        EXPECT_EQ(row.other_inclusive.value_or(0), there.inclusive.value_or(0)) << row.id;
        const double of_this = MeasureOf(query.sort, row.amounts, row.inclusive, *table);
        const double of_that =
            MeasureOf(query.sort, *row.other, row.other_inclusive, *table->other);
        sorted.push_back(query.side == RangeQuery::kThis    ? of_this
                         : query.side == RangeQuery::kOther ? of_that
                                                            : of_this - of_that);
      }
      EXPECT_TRUE(query.descending ? std::is_sorted(sorted.rbegin(), sorted.rend())
                                   : std::is_sorted(sorted.begin(), sorted.end()));
      EXPECT_EQ(table->total.bytes, alone->total.bytes);
      EXPECT_EQ(table->peak_event, alone->peak_event);
      EXPECT_EQ(table->other->total.bytes, other_alone->total.bytes);
      EXPECT_EQ(table->other->total.growth, other_alone->total.growth);
      EXPECT_EQ(table->other->peak_event, other_alone->peak_event);
      EXPECT_EQ(table->other->to_ns, other_alone->to_ns);
    }
  });
}

// Every row of a tree of three levels is the sum of those in it, and those in it are the blocks
// that match both.
TEST(RangeTableTest, RowsWithinARowAddUpToIt) {
  ForEachSeed(SeedsUpTo(8), [](uint32_t seed) {
    SlowRanges slow(seed);
    for (int i = 0; i < 10; ++i) {
      RangeQuery query = slow.AnyQuery();
      std::vector<RangeQuery::By> levels;
      for (uint32_t by = 0; by < kBys; ++by) levels.push_back(static_cast<RangeQuery::By>(by));
      std::shuffle(levels.begin(), levels.end(), std::mt19937(seed + static_cast<uint32_t>(i)));
      levels.resize(3);
      slow.CheckWithin(query, levels, 0, nullptr);
    }
  });
}

// The functions of a stack are those of the file to which they belong, on one frame.
TEST(RangeTableTest, FunctionsWithinALineAreThoseOfItsFrames) {
  analysis::EventScript script;
  script.Alloc(0x10000, 0x10000);
  script.Block(0x10000, 100, {"linear", "forward", "main"});
  script.Block(0x11000, 200, {"forward", "main"});
  script.Block(0x12000, 400, {"main"});
  const analysis::Trace trace = script.Build();
  const analysis::Examination examination(trace, script.definitions());
  Recording recording(examination, {{0, trace.rows.heap[1]}});
  RangeQuery query;
  query.to = trace.last_step();
  query.limit = 10;
  query.within = {"module/forward.py"};
  const auto rows_by = [&](RangeQuery::By by) {
    query.by = by;
    std::map<std::string, std::pair<uint64_t, uint64_t>> rows;
    const auto table = MakeRangeTable(recording, nullptr, query);
    for (const RangeRow& row : table->rows) {
      rows[row.name] = {row.amounts.bytes, row.inclusive.value_or(0)};
    }
    return rows;
  };
  using Rows = std::map<std::string, std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(rows_by(RangeQuery::kFunction), (Rows{{"forward (forward.py)", {200, 300}}}));
  EXPECT_EQ(rows_by(RangeQuery::kCategory), (Rows{{"unknown", {200, 300}}}));
  query.within.push_back("function/linear (linear.py)");
  EXPECT_EQ(rows_by(RangeQuery::kStack), (Rows{}));
  query.within = {"memory/7"};
  EXPECT_EQ(MakeRangeTable(recording, nullptr, query).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RangeTableTest, RolesAndTypesOfTensorsAreRows) {
  analysis::EventScript script;
  script.Alloc(0x10000, 0x10000);
  script.Tensor(script.Block(0x10000, 100), "bfloat16", "[8, 128]");
  script.Tensor(script.Block(0x11000, 200), "bfloat16", "[4]");
  script.Tensor(script.Block(0x12000, 400), "float32", "[4]");
  script.Role(0x11000, format::kRoleSaved, "MulBackward0");
  const analysis::Trace trace = script.Build();
  const analysis::Examination examination(trace, script.definitions());
  const analysis::Categories categories = analysis::Categorize(examination);
  Recording recording(examination, {{0, trace.rows.heap[1]}});
  recording.categories = &categories;
  RangeQuery query;
  query.to = trace.last_step();
  query.limit = 10;
  const auto rows_by = [&](RangeQuery::By by) {
    query.by = by;
    std::map<std::string, uint64_t> rows;
    const auto table = MakeRangeTable(recording, nullptr, query);
    for (const RangeRow& row : table->rows) rows[row.id] = row.amounts.bytes;
    return rows;
  };
  const std::map<std::string, uint64_t> types = {{"dtype/bfloat16", 300}, {"dtype/float32", 400}};
  EXPECT_EQ(rows_by(RangeQuery::kDtype), types);
  EXPECT_EQ(rows_by(RangeQuery::kRole)["role/saved for backward"], 200u);
}

TEST(RangeTableTest, AFoldedTableHasNoRowsOfNoise) {
  analysis::EventScript script;
  script.Alloc(0x10000, 0x10000);
  script.Block(0x10000, 100, {"CUDACachingAllocator::malloc", "forward", "main"});
  script.Block(0x11000, 200, {"CUDACachingAllocator::malloc"});
  const analysis::Trace trace = script.Build();
  const analysis::Examination examination(trace, script.definitions());
  Recording recording(examination, {{0, trace.rows.heap[1]}});
  RangeQuery query;
  query.to = trace.last_step();
  query.by = RangeQuery::kFunction;
  query.limit = 10;
  const auto inclusive = [&](bool folded) {
    query.folded = folded;
    std::map<std::string, uint64_t> rows;
    const auto table = MakeRangeTable(recording, nullptr, query);
    for (const RangeRow& row : table->rows) rows[row.id] = row.inclusive.value_or(0);
    return rows;
  };
  // A file of a script is named like its function.
  const std::string noise =
      "function/CUDACachingAllocator::malloc (CUDACachingAllocator::malloc.py)";
  EXPECT_EQ(inclusive(false)[noise], 300u);
  // A stack of noise alone keeps one frame.
  EXPECT_EQ(inclusive(true)[noise], 200u);
  EXPECT_EQ(inclusive(true)["function/forward (forward.py)"], 100u);
}

TEST(RangeTableTest, ARangeThatIsNotInTheRecordingIsRefused) {
  SlowRanges slow(1);
  RangeQuery query;
  query.limit = 1;
  query.to = slow.made.trace().last_step() + 1;
  EXPECT_EQ(MakeRangeTable(slow.recording, nullptr, query).status().code(),
            absl::StatusCode::kInvalidArgument);
  query.to = 3;
  query.from = 4;
  EXPECT_EQ(MakeRangeTable(slow.recording, nullptr, query).status().code(),
            absl::StatusCode::kInvalidArgument);
  query.from = 0;
  query.other = EventRange{4, 3, std::nullopt};
  EXPECT_EQ(MakeRangeTable(slow.recording, nullptr, query).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gmt::viewer
