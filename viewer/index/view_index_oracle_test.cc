// Random recordings and windows: compares the index's answers with those of a reference
// implementation that visits every block in every column.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {
namespace {

using analysis::EventScript;
using analysis::kNever;
using analysis::RowId;
using analysis::Trace;

// Generates segments, blocks of two devices, pinned memory, steps, lost frees, frees of unknown
// blocks, and times that stand still.
class ScriptGenerator {
 public:
  explicit ScriptGenerator(uint32_t seed) : random_(seed) {}

  EventScript Generate(int events) {
    const bool has_marks = Pick(3) != 0;
    const uint64_t mark_each = 20 + Pick(80);
    for (uint64_t i = 0; i < static_cast<uint64_t>(events); ++i) {
      if (has_marks && i % mark_each == mark_each / 2) script_.Mark("step", i / mark_each);
      AddOne();
    }
    int64_t t_ns = 0;
    for (format::Event& event : script_.events()) {
      if (Pick(3) != 0) t_ns += static_cast<int64_t>(Pick(2) == 0 ? Pick(50) : Pick(100'000));
      event.t_ns = Pick(20) == 0 ? t_ns - static_cast<int64_t>(Pick(1000)) : t_ns;
    }
    return std::move(script_);
  }

 private:
  uint64_t Pick(uint64_t count) { return random_() % count; }
  uint64_t Size() { return Pick(4) == 0 ? kMiB * (1 + Pick(64)) : 512 * (1 + Pick(1 << Pick(12))); }

  void AddOne() {
    const auto device = static_cast<uint32_t>(Pick(8) == 0);
    const uint64_t segment = (uint64_t{1} << 40) * (1 + device) + Pick(6) * 256 * kMiB;
    const uint64_t block = segment + Pick(Pick(2) == 0 ? 4 : 200) * kMiB;
    switch (Pick(16)) {
      case 0:
        script_.Alloc(segment, 200 * kMiB, {"segment"}).device = device;
        return;
      case 1:
        if (Pick(4) == 0) script_.Free(segment);
        return;
      case 2:
        script_.Pinned(0x1000 * (1 + Pick(8)), Size());
        return;
      case 3:
        script_.FreePinned(0x1000 * (1 + Pick(8)));
        return;
      case 4:
        script_.Sample(Pick(1000) * kMiB, 4096 * kMiB);
        return;
      case 5:
        if (Pick(4) == 0) script_.FreeBlock(block).size = 512;
        return;
      default:
        if (live_.empty() || Pick(100) < 52) {
          format::Event& event = script_.Block(block, Size(), {"f" + std::to_string(Pick(9))});
          event.device = device;
          event.present |= format::kHasStream;
          event.stream = Pick(3);
          live_.emplace_back(block, device);
          return;
        }
        const size_t which = Pick(3) == 0 ? Pick(live_.size()) : live_.size() - 1;
        script_.FreeBlock(live_[which].first).device = live_[which].second;
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  std::mt19937 random_;
  EventScript script_;
  std::vector<std::pair<uint64_t, uint32_t>> live_;
};

class ViewIndexOracle {
 public:
  explicit ViewIndexOracle(uint32_t seed)
      : random_(seed + 1),
        script_(ScriptGenerator(seed).Generate(60 + static_cast<int>(seed % 900))),
        trace_(script_.Build()),
        examination_(trace_, script_.definitions()) {
    std::mutex mutex;
    index_.Build(examination_, mutex, [](std::string_view, double) {});
    categories_ = std::make_unique<analysis::Categories>(analysis::Categorize(examination_));
    index_.AddCategories(trace_, *categories_, analysis::AliveTexts(examination_, *categories_));
  }

  void CheckStackedBlocks();
  void CheckLimits();
  void CheckBlocksByAddress();
  void CurvesHaveTheExtremesOfTheirColumns();

 private:
  // -- Reference implementation -------------------------------------------------------------------

  double Position(Axis axis, uint32_t event) const {
    if (axis == Axis::kEvent) return event;
    if (axis == Axis::kTime) {
      int64_t latest = 0;
      for (uint32_t i = 0; i < event; ++i) latest = std::max(latest, trace_.steps.TimeOf(i));
      return static_cast<double>(latest);
    }
    const auto& cycles = examination_.cycles().cycles;
    const auto between = [&](uint32_t from, uint32_t to, double step) {
      return step + static_cast<double>(event - from) * 1 / static_cast<double>(to - from);
    };
    if (event < cycles.front().begin) return between(0, cycles.front().begin, 0);
    for (size_t i = cycles.size(); i-- > 0;) {
      if (event < cycles[i].begin) continue;
      const bool is_last = i + 1 == cycles.size();
      const uint32_t end = is_last ? cycles[i].end : cycles[i + 1].begin;
      if (event < end) return between(cycles[i].begin, end, static_cast<double>(i) + 1);
      return event == end ? static_cast<double>(i) + 2
                          : between(end, trace_.last_step(), static_cast<double>(i) + 2);
    }
    return 0;
  }
  bool IsIn(RowId row, const Lane& lane) const {
    return trace_.rows.device[row] == lane.device && trace_.rows.heap[row] == lane.heap;
  }
  // Returns the live bytes after an event.
  double Live(uint32_t lane, uint32_t event) {
    std::vector<double>& live = live_[lane];
    for (auto at = static_cast<uint32_t>(live.size()); at <= trace_.last_step(); ++at) {
      uint64_t bytes = 0;
      for (RowId row = 0; row < trace_.rows.count(); ++row) {
        if (IsIn(row, index_.lanes()[lane]) && trace_.rows.HeldAfter(row, at))
          bytes += trace_.rows.size[row];
      }
      live.push_back(static_cast<double>(bytes));
    }
    return live[event];
  }
  static int ClassOf(Axis axis, double start, double end) {
    // Halves instead of using a logarithm, which may round up to the next class.
    double units = (end - start) * (axis == Axis::kStep ? 4096 : 1);
    int halvings = 0;
    for (; units >= 2; units /= 2) ++halvings;
    return halvings;
  }

  struct Slow {
    RowId row;
    double start, end, bytes;
    int duration_class;
  };
  // Returns the blocks in stack order.
  std::vector<Slow> LaidOut(const Window& window) const {
    const double width = (window.to - window.from) / window.columns;
    std::vector<Slow> blocks;
    for (RowId row = 0; row < trace_.rows.count(); ++row) {
      if (!IsIn(row, index_.lanes()[window.lane])) continue;
      Slow block = {row, positions_.at(window.axis)[trace_.rows.birth[row]], INFINITY,
                    static_cast<double>(trace_.rows.size[row]), 0};
      if (trace_.rows.death[row] != kNever) {
        block.end = positions_.at(window.axis)[trace_.rows.death[row]];
      }
      // As if freed at the end.
      const double last = window.axis == Axis::kTime ? static_cast<double>(trace_.end_t_ns)
                                                     : positions_.at(window.axis).back();
      const double end = std::min(block.end, last + (window.axis == Axis::kEvent ? 1 : 0));
      block.duration_class = ClassOf(window.axis, block.start, end);
      if (end - block.start >= width) blocks.push_back(block);
    }
    std::stable_sort(blocks.begin(), blocks.end(), [&](const Slow& a, const Slow& b) {
      return std::tuple(-a.duration_class, trace_.rows.birth[a.row], a.row) <
             std::tuple(-b.duration_class, trace_.rows.birth[b.row], b.row);
    });
    return blocks;
  }

  // -- Windows ------------------------------------------------------------------------------------

  uint64_t Pick(uint64_t count) { return random_() % count; }
  double Fraction() { return static_cast<double>(Pick(1 << 20)) / (1 << 20); }

  Window RandomWindow() {
    Window window;
    window.lane = static_cast<uint32_t>(Pick(Pick(2) == 0 ? 1 : index_.lanes().size()));
    window.axis = static_cast<Axis>(Pick(index_.has_steps() ? 3 : 2));
    for (uint32_t event = 0; event <= trace_.last_step() && !positions_.contains(window.axis);) {
      std::vector<double> positions;
      for (; event <= trace_.last_step(); ++event) {
        positions.push_back(Position(window.axis, event));
      }
      positions_[window.axis] = positions;
    }
    const double end = positions_[window.axis].back();
    const double span = end * std::pow(10, -3 * Fraction()) + 1e-9;
    window.from = Fraction() * (end - span) - (Pick(8) == 0 ? end / 10 : 0);
    window.to = window.from + span;
    window.columns = static_cast<uint32_t>(1 + Pick(Pick(2) == 0 ? 8 : 300));
    return window;
  }
  BlockQuery RandomQuery(Layout layout) {
    BlockQuery query;
    query.window = RandomWindow();
    query.layout = layout;
    const auto peak = static_cast<double>(index_.lanes()[query.window.lane].peak_bytes) + 1;
    const double span = peak * std::pow(10, -2 * Fraction());
    query.low = Pick(2) == 0 ? 0 : Fraction() * (peak - span);
    query.high = query.low + span;
    query.rows = static_cast<uint32_t>(1 + Pick(400));
    return query;
  }
  static double Middle(const Window& window, uint32_t column) {
    const double width = (window.to - window.from) / window.columns;
    return window.from + (column + 0.5) * width;
  }
  struct Column {
    bool is_known = false;
    uint32_t middle = 0, peak = 0;
    double least = INFINITY, most = -INFINITY;
  };
  Column ColumnOf(const Window& window, uint32_t column) {
    const std::vector<double>& positions = positions_.at(window.axis);
    const double width = (window.to - window.from) / window.columns;
    const double begin = window.from + width * column, end = window.from + width * (column + 1);
    Column result;
    result.is_known = Middle(window, column) >= positions[0];
    for (uint32_t event = 0; event < positions.size(); ++event) {
      if (positions[event] <= Middle(window, column)) result.middle = event;
      const bool is_left = event + 1 < positions.size() && positions[event + 1] <= begin;
      if (is_left || (positions[event] >= end && event > 0)) continue;
      const double live = Live(window.lane, event);
      result.least = std::min(result.least, live);
      if (live <= result.most) continue;
      result.most = live;
      result.peak = event;
    }
    return result;
  }
  bool IsShownIn(RowId row, const Column& column) const {
    return column.is_known && trace_.rows.HeldAfter(row, column.peak);
  }
  std::string Text(const BlockQuery& query) const {
    const Window& w = query.window;
    return "lane " + std::to_string(w.lane) + " axis " + std::to_string(static_cast<int>(w.axis)) +
           " " + std::to_string(w.from) + ".." + std::to_string(w.to) + " / " +
           std::to_string(w.columns) + ", " + std::to_string(query.low) + ".." +
           std::to_string(query.high) + " / " + std::to_string(query.rows);
  }

  // -- The page's interpretation of a tile
  // ---------------------------------------------------------

  struct Band {
    RowId row;
    double bottom, bytes;
  };
  // Returns the bands of blocks in a column, from the bottom up.
  static std::vector<Band> BandsAt(const BlockTile& tile, uint32_t column) {
    std::vector<Band> bands;
    double height = 0;
    for (size_t i = 0; i < tile.row.size(); ++i) {
      double bytes = 0;
      for (uint32_t k = tile.run_begin[i]; k < tile.run_begin[i + 1]; ++k) {
        if (tile.run_column[k] <= column) bytes = tile.run_bytes[k];
      }
      if (tile.row[i] != kNoRow) {
        if (!(tile.first[i] <= column && column < tile.last[i])) continue;
        bytes = tile.size[i];
        bands.push_back({tile.row[i], height, bytes});
      }
      height += bytes;
    }
    return bands;
  }

  std::mt19937 random_;
  EventScript script_;
  Trace trace_;
  analysis::Examination examination_;
  ViewIndex index_;
  std::unique_ptr<analysis::Categories> categories_;
  std::map<Axis, std::vector<double>> positions_;
  std::map<uint32_t, std::vector<double>> live_;  // by lane, then event
};

void ViewIndexOracle::CheckStackedBlocks() {
  for (int round = 0; round < 30; ++round) {
    const BlockQuery query = RandomQuery(Layout::kStacked);
    SCOPED_TRACE(Text(query));
    const double row_bytes = (query.high - query.low) / query.rows;
    const auto tile = index_.SelectBlocks(query);
    ASSERT_TRUE(tile.ok()) << tile.status();
    const std::vector<Slow> blocks = LaidOut(query.window);
    std::map<RowId, bool> is_seen;  // for each block that is large enough: whether it must be shown
    for (uint32_t c = 0; c < query.window.columns; ++c) {
      const Column column = ColumnOf(query.window, c);
      std::map<RowId, double> bottom;
      double height = 0;
      for (const Slow& block : blocks) {
        if (!IsShownIn(block.row, column)) continue;
        bottom[block.row] = height;
        if (block.bytes >= row_bytes) {
          is_seen[block.row] |= height < query.high && height + block.bytes > query.low;
        }
        height += block.bytes;
      }
      for (const Band& band : BandsAt(*tile, c)) {
        ASSERT_TRUE(bottom.contains(band.row)) << "column " << c << " row " << band.row;
        ASSERT_NEAR(band.bottom, bottom[band.row], row_bytes / 4 * 1.000001)
            << "column " << c << " row " << band.row;
      }
    }
    std::vector<RowId> shown, expected;
    for (uint32_t row : tile->row) {
      if (row != kNoRow) shown.push_back(row);
    }
    for (const Slow& block : blocks) {
      const auto seen = is_seen.find(block.row);
      if (seen != is_seen.end() && seen->second) expected.push_back(block.row);
    }
    EXPECT_EQ(shown, expected);
  }
}

void ViewIndexOracle::CheckLimits() {
  for (int round = 0; round < 30; ++round) {
    const BlockQuery query = RandomQuery(Layout::kStacked);
    SCOPED_TRACE(Text(query));
    SelectLimits limits;
    limits.blocks = static_cast<uint32_t>(Pick(30));
    limits.candidates = static_cast<uint32_t>(Pick(200));
    limits.column_updates = Pick(3000);
    const auto tile = index_.SelectBlocks(query, limits);
    ASSERT_TRUE(tile.ok()) << tile.status();
    const double row_bytes = (query.high - query.low) / query.rows;
    uint32_t blocks = 0;
    for (uint32_t row : tile->row) blocks += row != kNoRow ? 1 : 0;
    EXPECT_LE(blocks + tile->run_column.size(), limits.blocks);
    for (uint32_t c = 0; c < query.window.columns; ++c) {
      const std::vector<Band> bands = BandsAt(*tile, c);
      if (bands.empty()) continue;
      EXPECT_LE(bands.back().bottom + bands.back().bytes,
                ColumnOf(query.window, c).most + row_bytes / 4 * 1.000001);
    }
  }
}

void ViewIndexOracle::CheckBlocksByAddress() {
  for (int round = 0; round < 30; ++round) {
    const BlockQuery query = RandomQuery(Layout::kAddress);
    SCOPED_TRACE(Text(query));
    const auto tile = index_.SelectBlocks(query);
    ASSERT_TRUE(tile.ok()) << tile.status();
    std::map<RowId, double> shown;
    for (size_t i = 0; i < tile->row.size(); ++i) shown[tile->row[i]] = tile->place[i];
    ASSERT_EQ(shown.size(), tile->row.size()) << "a block appears twice";
    double end = 0;
    for (const AddressSpace& space : tile->spaces) {
      EXPECT_EQ(space.place, end);
      end += space.size;
    }
    std::vector<Column> columns;
    for (uint32_t c = 0; c < query.window.columns; ++c)
      columns.push_back(ColumnOf(query.window, c));
    for (const Slow& block : LaidOut(query.window)) {
      const bool is_live = std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
        return IsShownIn(block.row, column);
      });
      const uint64_t address = trace_.rows.address[block.row];
      double place = -1;
      for (const AddressSpace& space : tile->spaces) {
        if (space.address <= address && static_cast<double>(address - space.address) < space.size) {
          place = space.place + static_cast<double>(address - space.address);
        }
      }
      ASSERT_GE(place, 0) << "row " << block.row << " has no place";
      const bool expected = is_live && block.bytes >= (query.high - query.low) / query.rows &&
                            place < query.high && place + block.bytes > query.low;
      ASSERT_EQ(shown.contains(block.row), expected) << "row " << block.row;
      if (expected) {
        EXPECT_EQ(shown[block.row], place);
      }
    }
  }
}

void ViewIndexOracle::CurvesHaveTheExtremesOfTheirColumns() {
  for (int round = 0; round < 20; ++round) {
    const Window window = RandomWindow();
    SCOPED_TRACE(Text({.window = window}));
    const auto tile = index_.SelectCurve(window);
    ASSERT_TRUE(tile.ok()) << tile.status();
    const Lane& lane = index_.lanes()[window.lane];
    ASSERT_EQ(tile->series.front().series, Series::kLive);
    const CurveSeries& live = tile->series.front();
    for (uint32_t c = 0; c < window.columns; ++c) {
      const Column column = ColumnOf(window, c);
      if (!column.is_known) {
        EXPECT_TRUE(std::isnan(live.mid[c]));
        continue;
      }
      ASSERT_EQ(tile->event[c], column.middle) << "column " << c;
      ASSERT_EQ(tile->peak[c], column.peak) << "column " << c;
      ASSERT_EQ(live.mid[c], Live(window.lane, column.middle)) << "column " << c;
      ASSERT_EQ(live.min[c], column.least) << "column " << c;
      ASSERT_EQ(live.max[c], column.most) << "column " << c;
      double sum = 0;
      std::vector<double> by_category(analysis::kCategories);
      for (RowId row = 0; row < trace_.rows.count(); ++row) {
        if (!IsIn(row, lane) || !trace_.rows.HeldAfter(row, column.peak)) continue;
        by_category[static_cast<size_t>(categories_->Of(row).category)] +=
            static_cast<double>(trace_.rows.size[row]);
      }
      for (size_t code = 0; code < by_category.size(); ++code) {
        ASSERT_EQ(tile->categories[code * window.columns + c], by_category[code]);
        sum += by_category[code];
      }
      ASSERT_EQ(sum, live.max[c]);
    }
  }
}

TEST(ViewIndexOracleTest, StackedBlocksMatchTheReferenceLayout) {
  ForEachSeed(SeedsUpTo(40), [](uint32_t seed) { ViewIndexOracle(seed).CheckStackedBlocks(); });
}

TEST(ViewIndexOracleTest, LimitsDoNotMoveTheRest) {
  ForEachSeed(SeedsUpTo(40), [](uint32_t seed) { ViewIndexOracle(seed).CheckLimits(); });
}

TEST(ViewIndexOracleTest, BlocksByAddressMatchTheReference) {
  ForEachSeed(SeedsUpTo(40), [](uint32_t seed) { ViewIndexOracle(seed).CheckBlocksByAddress(); });
}

TEST(ViewIndexOracleTest, CurvesHaveTheExtremesOfTheirColumns) {
  ForEachSeed(SeedsUpTo(40),
              [](uint32_t seed) { ViewIndexOracle(seed).CurvesHaveTheExtremesOfTheirColumns(); });
}

}  // namespace
}  // namespace gmt::viewer
