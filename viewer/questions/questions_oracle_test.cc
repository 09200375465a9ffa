// Compares the answers about random recordings with slow ones, and with each other (questions.h,
// Q1).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/fragmentation/segment_map.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/names.h"
#include "viewer/questions/flame.h"
#include "viewer/questions/passing_curve.h"
#include "viewer/questions/recording.h"
#include "viewer/questions/scope_rows.h"
#include "viewer/questions/segments.h"
#include "viewer/questions/table.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr uint32_t kSeeds = 12;
constexpr int kEvents = 500;

struct Signed {
  RowId row;
  int sign;

  bool operator==(const Signed&) const = default;
};

// A recording, with straightforward reference implementations of the answers.
class Slow {
 public:
  explicit Slow(uint32_t seed)
      : made(seed, kEvents),
        examination(made.trace(), made.definitions()),
        recording(examination, made.lanes()),
        rows(made.trace().rows) {}

  Scope AnyScope() {
    Scope scope;
    scope.lane = made.Any(static_cast<uint32_t>(recording.lanes.size()));
    scope.of = static_cast<Scope::Of>(made.Any(4));
    scope.from = made.Any(made.trace().last_step() + 1);
    scope.to = scope.from + made.Any(made.trace().last_step() + 1 - scope.from);
    const char* texts[] = {
        "",       "", "", "forward", "LINEAR", "/^(back|for)ward$/", "0x7f0000", "attention.py:10",
        "nothing"};
    scope.filter.text = texts[made.Any(9)];
    if (made.Any(5) == 0) scope.filter.stream = made.Any(2) == 0 ? "unknown" : "0x1";
    if (made.Any(5) == 0) scope.filter.thread = made.Any(2) == 0 ? "unknown" : "11";
    if (made.Any(5) == 0) scope.filter.min_size = 512 * made.Any(300);
    if (made.Any(5) == 0) scope.filter.max_size = 512 * made.Any(300);
    return scope;
  }

  bool Fits(const Filter& filter, RowId row) {
    if (filter.min_size && rows.size[row] < *filter.min_size) return false;
    if (filter.max_size && rows.size[row] > *filter.max_size) return false;
    if (!filter.stream.empty() && StreamName(rows, row) != filter.stream) return false;
    if (!filter.thread.empty() && ThreadName(rows, row) != filter.thread) return false;
    if (filter.text.empty()) return true;
    if (filter.text == "0x7f0000") {
      return absl::StrCat("0x", absl::Hex(rows.address[row])).rfind(filter.text, 0) == 0;
    }
    for (const uint32_t stack : {rows.stack[row], rows.forward_stack[row]}) {
      for (const auto& frame : analysis::DescribeStack(made.definitions(), stack)) {
        const std::string& f = frame.function;
        if (filter.text == "forward" && f == "forward") return true;
        if (filter.text == "LINEAR" && f == "linear") return true;
        if (filter.text[0] == '/' && (f == "forward" || f == "backward")) return true;
        if (filter.text == "attention.py:10" && f == "attention") return true;
      }
    }
    return false;
  }

  // Innermost first.
  std::vector<std::string> FunctionsOf(uint32_t stack) {
    std::vector<std::string> functions;
    for (const auto& frame : analysis::DescribeStack(made.definitions(), stack))
      functions.push_back(frame.Name());
    return functions;
  }

  std::vector<Signed> RowsOf(const Scope& scope) {
    const LaneMemory lane = recording.lanes[scope.lane];
    std::vector<Signed> found;
    for (RowId row = 0; row < rows.count(); ++row) {
      if (rows.device[row] != lane.device || rows.heap[row] != lane.heap) continue;
      if (!Fits(scope.filter, row)) continue;
      const bool before = rows.HeldAfter(row, scope.from), after = rows.HeldAfter(row, scope.to);
      const bool born = rows.birth[row] > scope.from && rows.birth[row] <= scope.to;
      switch (scope.of) {
        case Scope::kLive:
          if (after) found.push_back({row, 1});
          break;
        case Scope::kGrowth:
          if (before != after) found.push_back({row, after ? 1 : -1});
          break;
        case Scope::kBorn:
          if (born) found.push_back({row, 1});
          break;
        case Scope::kKept:
          if (born && after) found.push_back({row, 1});
          break;
      }
    }
    std::sort(found.begin(), found.end(), [&](const Signed& a, const Signed& b) {
      return std::tuple(rows.birth[a.row], a.row) < std::tuple(rows.birth[b.row], b.row);
    });
    return found;
  }

  uint64_t LiveBytes(uint32_t lane, uint32_t event) {
    Scope scope;
    scope.lane = lane;
    scope.to = event;
    uint64_t bytes = 0;
    for (const Signed& row : RowsOf(scope)) bytes += rows.size[row.row];
    return bytes;
  }

  std::string KeyOf(TableQuery::By by, RowId row) {
    const uint32_t forward = rows.forward_stack[row];
    // All frames are Python code of the program: those of a backward pass precede those of the
    // forward pass.
    auto frames = analysis::DescribeStack(made.definitions(), rows.stack[row]);
    if (frames.empty()) frames = analysis::DescribeStack(made.definitions(), forward);
    const int own = analysis::OwnFrame(frames);
    const auto* frame = own < 0 ? nullptr : &frames[static_cast<size_t>(own)];
    switch (by) {
      case TableQuery::kStack:
        return absl::StrCat(
            "stack/", rows.stack[row],
            rows.forward_stack[row] == 0 ? "" : absl::StrCat("+", rows.forward_stack[row]));
      case TableQuery::kFunction:
        return frame == nullptr
                   ? "function/unknown"
                   : absl::StrCat("function/", frame->function, " (", frame->FileName(), ")");
      case TableQuery::kFile:
        return absl::StrCat("file/", frame == nullptr ? "unknown" : frame->file);
      case TableQuery::kCategory:
        return "category/0";
      case TableQuery::kSize:
        return absl::StrCat("size/", rows.size[row]);
      case TableQuery::kStream:
        return "stream/" + StreamName(rows, row);
      case TableQuery::kThread:
        return "thread/" + ThreadName(rows, row);
      case TableQuery::kBlock:
        break;
    }
    return absl::StrCat("block/", row);
  }

  // Returns the maximum that each group holds after any event.
  std::map<std::string, uint64_t> Peaks(const Scope& scope, TableQuery::By by) {
    std::map<std::string, uint64_t> peaks;
    Scope at = scope;
    at.of = Scope::kLive;
    for (at.to = 0; at.to <= made.trace().last_step(); ++at.to) {
      std::map<std::string, uint64_t> live;
      for (const Signed& row : RowsOf(at)) live[KeyOf(by, row.row)] += rows.size[row.row];
      for (const auto& [key, bytes] : live) peaks[key] = std::max(peaks[key], bytes);
    }
    return peaks;
  }

  RandomRecording made;
  analysis::Examination examination;
  Recording recording;
  const analysis::Rows& rows;
};

TEST(QuestionsOracleTest, ScopesMatchASearchOfAllRows) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 40; ++i) {
      const Scope scope = slow.AnyScope();
      auto filter = RowFilter::Make(slow.recording, scope.filter);
      ASSERT_TRUE(filter.ok()) << filter.status();
      std::vector<Signed> found;
      ForEachRow(slow.recording, scope, *filter, [&](RowId row, int sign) {
        found.push_back({row, sign});
        return true;
      });
      std::vector<Signed> expected = slow.RowsOf(scope);
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Signed& a, const Signed& b) { return a.sign > b.sign; });
      ASSERT_TRUE(found == expected) << "scope " << i << ", text " << scope.filter.text;
    }
  });
}

TEST(QuestionsOracleTest, TableFlameGraphAndSegmentsAgree) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 40; ++i) {
      Scope scope = slow.AnyScope();
      scope.of = Scope::kLive;
      scope.filter = {};
      const uint64_t live = slow.LiveBytes(scope.lane, scope.to);
      TableQuery table_query;
      table_query.scope = scope;
      table_query.by = static_cast<TableQuery::By>(slow.made.Any(8));
      table_query.limit = 5;
      const auto table = MakeTable(slow.recording, table_query);
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ(table->total_bytes, static_cast<int64_t>(live));
      FlameQuery flame_query;
      flame_query.scope = scope;
      flame_query.inverted = slow.made.Any(2) == 0;
      flame_query.folded = slow.made.Any(2) == 0;
      const auto flame = MakeFlame(slow.recording, flame_query);
      ASSERT_TRUE(flame.ok()) << flame.status();
      EXPECT_EQ(flame->total, static_cast<double>(live));
      const auto segments = MakeSegments(slow.recording, scope.lane, scope.to);
      ASSERT_TRUE(segments.ok()) << segments.status();
      EXPECT_EQ(segments->live_bytes, live);
      uint64_t placed = 0;
      for (const SegmentState& segment : segments->segments) {
        for (size_t k = 0; k < segment.row.size(); ++k) {
          if (segment.pending[k] == 0) placed += segment.bytes[k];
        }
      }
      EXPECT_EQ(placed, live) << "lane " << scope.lane << " event " << scope.to;
    }
  });
}

TEST(QuestionsOracleTest, TableRowsAreTheGroupsOfTheScope) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 30; ++i) {
      TableQuery query;
      query.scope = slow.AnyScope();
      query.by = static_cast<TableQuery::By>(slow.made.Any(8));
      query.sort = static_cast<TableQuery::Sort>(slow.made.Any(7));
      query.descending = slow.made.Any(2) == 0;
      query.limit = 1 + slow.made.Any(9);
      std::map<std::string, std::pair<int64_t, int64_t>> expected;  // bytes, blocks
      for (const Signed& row : slow.RowsOf(query.scope)) {
        auto& group = expected[slow.KeyOf(query.by, row.row)];
        group.first += row.sign * static_cast<int64_t>(slow.rows.size[row.row]);
        group.second += row.sign;
      }
      std::map<std::string, std::pair<int64_t, int64_t>> found;
      std::vector<TableRow> rows;
      for (query.offset = 0;; query.offset += query.limit) {
        const auto table = MakeTable(slow.recording, query);
        ASSERT_TRUE(table.ok()) << table.status();
        ASSERT_EQ(table->total_rows, expected.size());
        if (table->rows.empty()) break;
        for (const TableRow& row : table->rows) {
          EXPECT_TRUE(found.try_emplace(row.id, row.bytes, row.blocks).second) << row.id;
          rows.push_back(row);
        }
      }
      ASSERT_EQ(found, expected) << "by " << int{query.by} << " sort " << int{query.sort};
      for (size_t k = 1; k < rows.size(); ++k) {
        const TableRow& a = query.descending ? rows[k] : rows[k - 1];
        const TableRow& b = query.descending ? rows[k - 1] : rows[k];
        if (query.sort == TableQuery::kBytes) {
          EXPECT_LE(a.bytes, b.bytes);
        }
        if (query.sort == TableQuery::kBlocks) {
          EXPECT_LE(a.blocks, b.blocks);
        }
        if (query.sort == TableQuery::kPeak) {
          EXPECT_LE(a.peak_bytes, b.peak_bytes);
        }
        if (query.sort == TableQuery::kLifetime) {
          EXPECT_LE(a.median_lifetime_ns.value_or(INT64_MAX),
                    b.median_lifetime_ns.value_or(INT64_MAX));
        }
      }
    }
  });
}

TEST(QuestionsOracleTest, PeaksMatchAWalkOverAllEvents) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 4; ++i) {
      TableQuery query;
      query.scope = slow.AnyScope();
      query.scope.of = Scope::kBorn;
      query.scope.from = 0;
      query.scope.to = slow.made.trace().last_step();
      query.by = static_cast<TableQuery::By>(slow.made.Any(7));
      query.limit = 500;
      const auto peaks = slow.Peaks(query.scope, query.by);
      const auto table = MakeTable(slow.recording, query);
      ASSERT_TRUE(table.ok()) << table.status();
      for (const TableRow& row : table->rows) EXPECT_EQ(row.peak_bytes, peaks.at(row.id)) << row.id;
    }
  });
}

TEST(QuestionsOracleTest, SparklinesAddUpToWhatIsLive) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    TableQuery query;
    query.scope = slow.AnyScope();
    query.scope.filter = {};
    query.scope.of = Scope::kBorn;
    query.scope.from = 0;
    query.scope.to = slow.made.trace().last_step();
    query.limit = 500;
    query.sparkline = 16;
    for (const auto by : {TableQuery::kSize, TableQuery::kStack}) {
      query.by = by;
      const auto table = MakeTable(slow.recording, query);
      ASSERT_TRUE(table.ok()) << table.status();
      ASSERT_EQ(table->rows.size(), table->total_rows);
      // Memory from before is not born in the scope, and its groups may have no row.
      std::set<std::string> shown;
      for (const TableRow& row : table->rows) shown.insert(row.id);
      for (uint32_t column = 0; column < query.sparkline; ++column) {
        double sum = 0;
        for (const TableRow& row : table->rows) sum += row.sparkline[column];
        Scope live = query.scope;
        live.of = Scope::kLive;
        live.to = LiveSamples::EventOf(slow.made.trace(), column, query.sparkline);
        double expected = 0;
        for (const Signed& row : slow.RowsOf(live)) {
          if (shown.contains(slow.KeyOf(by, row.row))) {
            expected += static_cast<double>(slow.rows.size[row.row]);
          }
        }
        EXPECT_EQ(sum, expected) << "column " << column;
      }
    }
  });
}

TEST(QuestionsOracleTest, PagesOfBlocksDoNotDependOnTheSortLimit) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 30; ++i) {
      TableQuery query;
      query.scope = slow.AnyScope();
      query.by = TableQuery::kBlock;
      query.sort = static_cast<TableQuery::Sort>(slow.made.Any(7));
      query.descending = slow.made.Any(2) == 0;
      query.offset = slow.made.Any(60);
      query.limit = 1 + slow.made.Any(40);
      auto filter = RowFilter::Make(slow.recording, query.scope.filter);
      const Table all = MakeBlockTable(slow.recording, query, *filter);
      for (const size_t most : {size_t{1}, size_t{5}, size_t{50}}) {
        const Table few = MakeBlockTable(slow.recording, query, *filter, most);
        ASSERT_EQ(few.rows.size(), all.rows.size());
        for (size_t k = 0; k < all.rows.size(); ++k) {
          ASSERT_EQ(few.rows[k].id, all.rows[k].id)
              << "sort " << int{query.sort} << " row " << k << " limit " << most;
        }
      }
    }
  });
}

// Returns all paths of a flame graph with their bytes.
std::map<std::string, double> PathsOf(const FlameTree& tree) {
  std::vector<std::string> paths(tree.parent.size());
  std::map<std::string, double> found;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& name = tree.names[tree.name[i]];
    if (i > 0) paths[i] = paths[tree.parent[i]] + ";" + name.substr(0, name.find('\t'));
    found[paths[i]] += tree.bytes[i];
  }
  return found;
}

TEST(QuestionsOracleTest, FlameGraphHasEveryPathWithItsBytes) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 20; ++i) {
      FlameQuery query;
      query.scope = slow.AnyScope();
      query.inverted = slow.made.Any(2) == 0;
      std::map<std::string, double> expected = {{"", 0}};
      for (const Signed& row : slow.RowsOf(query.scope)) {
        const double bytes = row.sign * static_cast<double>(slow.rows.size[row.row]);
        std::vector<std::string> calls = slow.FunctionsOf(slow.rows.stack[row.row]);
        const auto forward = slow.FunctionsOf(slow.rows.forward_stack[row.row]);
        if (!forward.empty()) calls.push_back("backward pass");
        calls.insert(calls.end(), forward.begin(), forward.end());
        if (!query.inverted) std::reverse(calls.begin(), calls.end());
        std::string path;
        expected[path] += bytes;
        for (const std::string& call : calls) expected[path += ";" + call] += bytes;
        if (calls.empty()) expected[";unknown"] += bytes;
      }
      const auto flame = MakeFlame(slow.recording, query);
      ASSERT_TRUE(flame.ok()) << flame.status();
      ASSERT_EQ(PathsOf(*flame), expected);
      for (const size_t most : {size_t{2}, size_t{7}, size_t{20}}) {
        const auto pruned = MakeFlame(slow.recording, query, most);
        ASSERT_LE(pruned->parent.size(), most);
        EXPECT_EQ(pruned->total, flame->total);
        for (size_t k = 1; k < pruned->parent.size(); ++k) ASSERT_LT(pruned->parent[k], k);
      }
    }
  });
}

TEST(QuestionsOracleTest, PassingCurveMatchesASearchOfAllRowsAtEachMidpoint) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (int i = 0; i < 25; ++i) {
      Scope scope = slow.AnyScope();
      scope.of = Scope::kLive;
      // Some columns lie before or after the recording, some between the same two events.
      ColumnPeaks columns;
      const uint32_t last = slow.made.trace().last_step();
      const uint32_t from = slow.made.Any(last + 1), length = slow.made.Any(last + 1 - from);
      for (uint32_t column = 0; column < 30; ++column) {
        columns.event.push_back(from + slow.made.Any(length + 1));
        columns.is_known.push_back(column > 1 && column < 28);
      }
      std::sort(columns.event.begin(), columns.event.end());
      const auto curve = MakePassingCurve(slow.recording, scope.lane, scope.filter, columns);
      ASSERT_TRUE(curve.ok()) << curve.status();
      ASSERT_EQ(curve->live.size(), columns.event.size());
      for (size_t column = 0; column < columns.event.size(); ++column) {
        ASSERT_EQ(std::isnan(curve->live[column]), !columns.is_known[column]);
        if (!columns.is_known[column]) continue;
        scope.to = columns.event[column];
        double bytes = 0;
        for (const Signed& row : slow.RowsOf(scope)) {
          bytes += static_cast<double>(slow.rows.size[row.row]);
        }
        ASSERT_EQ(curve->live[column], bytes) << "event " << scope.to;
      }
    }
  });
}

TEST(QuestionsOracleTest, PagesOfFoundBlocksListAllBlocksByBirth) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    Questions questions(slow.examination, slow.made.lanes());
    for (int i = 0; i < 30; ++i) {
      const Scope scope = slow.AnyScope();
      const std::vector<Signed> expected = slow.RowsOf(scope);
      std::vector<uint32_t> found;
      uint32_t after = kNoRow;
      for (;;) {
        const auto page = questions.AnswerFind(scope, after, 7);
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_EQ(page->total, expected.size());
        if (page->row.empty()) break;
        found.insert(found.end(), page->row.begin(), page->row.end());
        after = page->row.back();
      }
      ASSERT_EQ(found.size(), expected.size());
      for (size_t k = 0; k < found.size(); ++k) ASSERT_EQ(found[k], expected[k].row);
    }
  });
}

TEST(QuestionsOracleTest, SegmentsFromHeldRowsMatchThoseFromAllRows) {
  ForEachSeed(SeedsUpTo(kSeeds), [](uint32_t seed) {
    Slow slow(seed);
    for (uint32_t event = 0; event <= slow.made.trace().last_step(); event += 3) {
      const auto all = analysis::SegmentsAfter(slow.made.trace(), 0, event);
      const auto fast =
          analysis::SegmentsAfter(slow.made.trace(), 0, event, slow.recording.held.After(event));
      ASSERT_EQ(fast.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        // If no live block of a segment has a stream, freed blocks among all rows may still reveal
        // it.
        const bool has_block =
            std::any_of(all[i].pieces.begin(), all[i].pieces.end(),
                        [](const analysis::Piece& piece) { return piece.row != kNoRow; });
        if (fast[i].stream || !has_block) {
          EXPECT_EQ(fast[i].stream, all[i].stream) << "event " << event;
        }
        ASSERT_EQ(fast[i].pieces.size(), all[i].pieces.size());
        for (size_t k = 0; k < all[i].pieces.size(); ++k) {
          EXPECT_EQ(fast[i].pieces[k].address, all[i].pieces[k].address);
          EXPECT_EQ(fast[i].pieces[k].kind, all[i].pieces[k].kind);
          EXPECT_EQ(fast[i].pieces[k].row, all[i].pieces[k].row);
        }
      }
    }
  });
}

}  // namespace
}  // namespace gmt::viewer
