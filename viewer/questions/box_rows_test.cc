// Compares the blocks in boxes of random recordings with those that a stack of all blocks, built
// anew for each moment, has between two heights.

#include "viewer/questions/box_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tests/seeds/seeds.h"
#include "viewer/index/duration_classes.h"
#include "viewer/questions/range_table.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

class SlowBoxes {
 public:
  explicit SlowBoxes(uint32_t seed, int events = 300)
      : made(seed, events), examination(made.trace(), made.definitions()) {
    std::mutex mutex;
    index.Build(examination, mutex, [](std::string_view, double) {});
    std::vector<LaneMemory> lanes;
    for (const Lane& lane : index.lanes()) lanes.push_back({lane.device, lane.heap});
    recording = std::make_unique<Recording>(examination, lanes);
  }

  using Query = BoxRange;
  Query AnyQuery(Layout layout) {
    Query query;
    query.lane = made.Any(static_cast<uint32_t>(recording->lanes.size()));
    query.from = made.Any(index.events() + 1);
    query.to = query.from + made.Any(index.events() + 1 - query.from);
    query.box.axis = made.Any(2) == 0 ? Axis::kEvent : Axis::kTime;
    query.box.layout = layout;
    const auto top = layout == Layout::kStacked
                         ? static_cast<uint32_t>(index.lanes()[query.lane].peak_bytes)
                         : 30u << 20;
    query.box.low = made.Any(top);
    query.box.high = query.box.low + 1 + made.Any(top / 3);
    return query;
  }

  bool IsLive(const Query& query, RowId row, uint32_t event) const {
    return recording->IsIn(recording->lanes[query.lane], row) && rows().HeldAfter(row, event);
  }

  // The peak of each column that is not empty, and the last event.
  std::set<uint32_t> MomentsOf(const Query& query) const {
    std::set<uint32_t> moments = {query.to};
    const Axis axis = query.box.axis;
    const double begin = index.PositionOf(axis, query.from), end = index.PositionOf(axis, query.to);
    for (uint32_t c = 0; begin < end && c < kBoxMoments; ++c) {
      const auto edge = [&](uint32_t column) {
        return begin + column * ((end - begin) / kBoxMoments);
      };
      uint32_t last = index.EventAt(axis, edge(c));
      uint32_t peak = last;
      uint64_t most = BytesAfter(query, last);
      while (last < index.events() && index.PositionOf(axis, last + 1) < edge(c + 1)) {
        ++last;
        if (BytesAfter(query, last) > most) most = BytesAfter(query, peak = last);
      }
      moments.insert(std::min(peak, query.to));
    }
    return moments;
  }

  std::set<RowId> StackedIn(const Query& query) const {
    std::set<RowId> in_box;
    for (const uint32_t event : MomentsOf(query)) {
      std::vector<RowId> stack;
      for (RowId row = 0; row < rows().count(); ++row) {
        if (IsLive(query, row, event)) stack.push_back(row);
      }
      std::stable_sort(stack.begin(), stack.end(), [&](RowId a, RowId b) {
        const double left = ClassOf(query.box.axis, a), right = ClassOf(query.box.axis, b);
        return left != right ? left > right : rows().birth[a] < rows().birth[b];
      });
      double bottom = 0;
      for (const RowId row : stack) {
        const double top = bottom + static_cast<double>(rows().size[row]);
        if (bottom < query.box.high && top > query.box.low) in_box.insert(row);
        bottom = top;
      }
    }
    return in_box;
  }

  std::set<RowId> ByAddressIn(const Query& query) const {
    std::set<RowId> in_box;
    for (RowId row = 0; row < rows().count(); ++row) {
      const auto place = index.PlaceOf(row);
      bool is_live = false;
      for (uint32_t event = query.from; event <= query.to; ++event) {
        is_live = is_live || IsLive(query, row, event);
      }
      if (is_live && place &&
          *place<query.box.high&& * place + static_cast<double>(rows().size[row])> query.box.low) {
        in_box.insert(row);
      }
    }
    return in_box;
  }

  uint32_t PeakOf(const Query& query, const std::set<RowId>& in_box) const {
    const std::set<uint32_t> moments = MomentsOf(query);
    uint32_t peak = *moments.begin();
    uint64_t most = 0;
    for (const uint32_t event : moments) {
      uint64_t bytes = 0;
      for (const RowId row : in_box) bytes += IsLive(query, row, event) ? rows().size[row] : 0;
      if (bytes > most) most = bytes, peak = event;
    }
    return peak;
  }

  RandomRecording made;
  analysis::Examination examination;
  ViewIndex index;
  std::unique_ptr<Recording> recording;

 private:
  const analysis::Rows& rows() const { return made.trace().rows; }
  uint64_t BytesAfter(const Query& query, uint32_t event) const {
    const auto [found, is_new] = bytes_.try_emplace({query.lane, event});
    if (!is_new) return found->second;
    for (RowId row = 0; row < rows().count(); ++row) {
      if (IsLive(query, row, event)) found->second += rows().size[row];
    }
    return found->second;
  }
  double ClassOf(Axis axis, RowId row) const {
    const double end =
        axis == Axis::kEvent ? index.events() + 1.0 : static_cast<double>(index.end_ns());
    const double death =
        rows().death[row] == analysis::kNever ? end : index.PositionOf(axis, rows().death[row]);
    return std::floor(std::log2(std::max(1.0, death - index.PositionOf(axis, rows().birth[row]))));
  }

  mutable std::map<std::pair<uint32_t, uint32_t>, uint64_t> bytes_;  // by lane and event
};

// In parts of any size.
std::set<RowId> Find(SlowBoxes& slow, const SlowBoxes::Query& query, uint32_t* peak) {
  const auto found = FindBoxRows(*slow.recording, slow.index, query, 1 + slow.made.Any(150));
  EXPECT_TRUE(found.ok()) << found.status();
  *peak = found->peak;
  const std::set<RowId> rows(found->rows.begin(), found->rows.end());
  EXPECT_EQ(rows.size(), found->rows.size()) << "a block is counted twice";
  return rows;
}

TEST(BoxRowsTest, AnyBoxOfAStackHasTheBlocksThatLieInIt) {
  ForEachSeed(SeedsUpTo(5), [](uint32_t seed) {
    SlowBoxes slow(seed);
    for (int i = 0; i < 12; ++i) {
      const auto query = slow.AnyQuery(Layout::kStacked);
      uint32_t peak = 0;
      const std::set<RowId> found = Find(slow, query, &peak);
      ASSERT_EQ(found, slow.StackedIn(query)) << query.from << " to " << query.to;
      EXPECT_EQ(peak, slow.PeakOf(query, found));
    }
  });
}

TEST(BoxRowsTest, AnyBoxOfAddressesHasTheBlocksThatLieInIt) {
  ForEachSeed(SeedsUpTo(5), [](uint32_t seed) {
    SlowBoxes slow(seed);
    for (int i = 0; i < 8; ++i) {
      const auto query = slow.AnyQuery(Layout::kAddress);
      uint32_t peak = 0;
      const std::set<RowId> found = Find(slow, query, &peak);
      ASSERT_EQ(found, slow.ByAddressIn(query)) << query.from << " to " << query.to;
      EXPECT_EQ(peak, slow.PeakOf(query, found));
    }
  });
}

TEST(BoxRowsTest, SumsOfABoxOfAddressesAreThoseOfItsBlocks) {
  ForEachSeed(SeedsUpTo(5), [](uint32_t seed) {
    SlowBoxes slow(seed);
    const analysis::Trace& trace = slow.made.trace();
    for (int i = 0; i < 8; ++i) {
      const auto box = slow.AnyQuery(Layout::kAddress);
      uint64_t bytes = 0, allocations = 0, growth = 0;
      double byte_ns = 0;
      const std::set<RowId> blocks = slow.ByAddressIn(box);
      const uint32_t peak = slow.PeakOf(box, blocks);
      for (const RowId row : blocks) {
        const uint64_t size = trace.rows.size[row];
        const uint32_t birth = trace.rows.birth[row], death = trace.rows.death[row];
        const int64_t begin = trace.TimeOf(std::max(birth, box.from));
        byte_ns += static_cast<double>(size) *
                   static_cast<double>(trace.TimeOf(std::min(death, box.to)) - begin);
        if (trace.rows.HeldAfter(row, peak)) bytes += size;
        if (trace.rows.HeldAfter(row, box.to)) growth += size;
        birth > box.from ? ++allocations : growth -= size;
      }
      RangeQuery query;
      query.lane = box.lane, query.from = box.from, query.to = box.to, query.box = box.box;
      const auto table = MakeRangeTable(*slow.recording, &slow.index, query);
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_EQ(table->total.bytes, bytes);
      EXPECT_EQ(table->total.allocations, allocations);
      EXPECT_EQ(table->total.growth, static_cast<int64_t>(growth));
      EXPECT_NEAR(table->total.byte_seconds, byte_ns / 1e9, byte_ns / 1e9 * 1e-9);
    }
  });
}

TEST(BoxRowsTest, ABoxAroundEverythingIsARange) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    SlowBoxes slow(seed);
    RangeQuery query;
    // So that each event has its own moment.
    query.to = std::min(slow.index.events(), kBoxMoments - 1);
    query.by = RangeQuery::kStack;
    query.limit = kMaxTableRows;
    const auto all = MakeRangeTable(*slow.recording, nullptr, query);
    query.box = Box{Axis::kEvent, Layout::kStacked, -1, 1e15};
    const auto box = MakeRangeTable(*slow.recording, &slow.index, query);
    ASSERT_TRUE(all.ok() && box.ok()) << box.status();
    EXPECT_EQ(box->total.bytes, all->total.bytes);
    EXPECT_EQ(box->total.allocations, all->total.allocations);
    EXPECT_EQ(box->total.growth, all->total.growth);
    EXPECT_EQ(box->peak_event, all->peak_event);
  });
}

TEST(BoxRowsTest, ClassesOfDurationsAreThoseOfTheIndex) {
  ForEachSeed(SeedsUpTo(4), [](uint32_t seed) {
    SlowBoxes slow(seed, 3000);
    for (int i = 0; i < 200; ++i) {
      const Axis axis = slow.made.Any(2) == 0 ? Axis::kEvent : Axis::kTime;
      const uint32_t from = slow.made.Any(slow.index.events() + 1);
      const uint32_t to = from + slow.made.Any(slow.index.events() + 1 - from);
      const DurationClasses classes(slow.index, axis, from, to);
      const analysis::Rows& rows = slow.made.trace().rows;
      for (RowId row = 0; row < rows.count(); ++row) {
        ASSERT_EQ(classes.Of(rows.birth[row], rows.death[row]),
                  slow.index.DurationClassOf(axis, rows.birth[row], rows.death[row]))
            << rows.birth[row] << " to " << rows.death[row];
      }
    }
  });
}

TEST(BoxRowsTest, AnInvalidBoxIsRefused) {
  SlowBoxes slow(1);
  const auto status = [&](const Box& box) {
    return FindBoxRows(*slow.recording, slow.index, {0, 0, 1, box}).status().code();
  };
  EXPECT_EQ(status({Axis::kEvent, Layout::kStacked, 2, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status({Axis::kEvent, Layout::kStacked, 0, INFINITY}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status({Axis::kStep, Layout::kStacked, 0, 1}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gmt::viewer
