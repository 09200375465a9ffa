// Compares windows with the whole recording, the slow, obvious way to know what was held when.

#include "viewer/live/live_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "tests/seeds/seeds.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using analysis::kNever;
using analysis::kNoRow;
using analysis::RowId;
using analysis::Step;
using analysis::Trace;

using Held = std::tuple<int32_t, uint32_t, uint64_t, uint64_t, uint32_t, uint64_t, int64_t>;

int64_t BornAt(const Trace& trace, RowId row) {
  if (trace.rows.birth[row] != 0) return trace.TimeOf(trace.rows.birth[row]);
  return trace.rows.BornBefore(row).value_or(-1);
}

// Returns what is held after a step, with everything that the page shows of it.
std::vector<Held> HeldAt(const Trace& trace, Step step) {
  std::vector<Held> held;
  const analysis::Rows& rows = trace.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!rows.HeldAfter(row, step)) continue;
    held.push_back({rows.device[row], rows.heap[row], rows.address[row], rows.size[row],
                    rows.stack[row], rows.stream[row], BornAt(trace, row)});
  }
  std::sort(held.begin(), held.end());
  return held;
}

class LiveWindowTest : public testing::Test {
 protected:
  // Returns events [from, to) of a recording, as a chunk of it.
  static format::EventBatch Piece(const format::EventBatch& all, size_t from, size_t to) {
    format::EventBatch piece = all;
    piece.events.assign(all.events.begin() + static_cast<std::ptrdiff_t>(from),
                        all.events.begin() + static_cast<std::ptrdiff_t>(to));
    return piece;
  }
};

TEST_F(LiveWindowTest, EachMomentInsideEqualsThatOfTheWholeRecording) {
  ForEachSeed(SeedsUpTo(8), [](uint32_t seed) {
    std::mt19937 random(seed);
    RandomRecording recording(random(), 3000);
    const format::EventBatch& all = recording.batch();
    LiveWindow window(recording.definitions(), 100 + random() % 400);
    analysis::TraceBuilder whole(recording.definitions());
    for (size_t at = 0; at < all.events.size();) {
      const size_t end = std::min(all.events.size(), at + 1 + random() % 200);
      const format::EventBatch piece = Piece(all, at, end);
      ASSERT_TRUE(window.OnEvents(piece).ok());
      ASSERT_TRUE(whole.OnEvents(piece).ok());
      at = end;
      const Trace now = window.SoFar(), then = whole.SoFar();
      const auto dropped = static_cast<Step>(window.dropped_steps());
      ASSERT_EQ(now.last_step() + dropped, then.last_step());
      for (int look = 0; look < 4; ++look) {
        const Step step = look == 0   ? 0
                          : look == 1 ? now.last_step()
                                      : static_cast<Step>(random() % (now.last_step() + 1));
        ASSERT_EQ(HeldAt(now, step), HeldAt(then, step + dropped))
            << "window " << window.number() << ", step " << step;
        ASSERT_TRUE(step == 0 || now.TimeOf(step) == then.TimeOf(step + dropped));
      }
    }
    EXPECT_GT(window.number(), 1u);
  });
}

TEST_F(LiveWindowTest, RowsAreTranslatedToTheNextWindows) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937 random(seed);
    RandomRecording recording(random(), 6000);
    const format::EventBatch& all = recording.batch();
    LiveWindow window(recording.definitions(), 300);
    Trace before;
    uint32_t number = 0;
    int compared = 0, gone = 0;
    for (size_t at = 0; at < all.events.size(); at += 50) {
      const size_t end = std::min(all.events.size(), at + 50);
      ASSERT_TRUE(window.OnEvents(Piece(all, at, end)).ok());
      const Trace now = window.SoFar();
      for (RowId row = 0; row < before.rows.count(); ++row) {
        const RowId moved = MovedRow(window.moves(), number, window.number(), row);
        if (moved == kNoRow) {
          ASSERT_NE(before.rows.death[row], kNever) << "live blocks are never lost";
          ++gone;
          continue;
        }
        ASSERT_LT(moved, now.rows.count());
        ASSERT_EQ(now.rows.address[moved], before.rows.address[row]);
        ASSERT_EQ(now.rows.size[moved], before.rows.size[row]);
        ASSERT_EQ(BornAt(now, moved), BornAt(before, row));
        ++compared;
      }
      before = now;
      number = window.number();
    }
    EXPECT_GT(number, 3u);
    EXPECT_GT(gone, 0);
    EXPECT_GT(compared, 1000);
  });
}

TEST_F(LiveWindowTest, RowsOfOldWindowsAreGone) {
  RowMoves moves;
  EXPECT_EQ(MovedRow(moves, 3, 3, 17), 17u);
  EXPECT_EQ(MovedRow(moves, 2, 3, 17), kNoRow);
  EXPECT_EQ(MovedRow(moves, 4, 3, 17), kNoRow);
}

TEST_F(LiveWindowTest, MemoryIsBoundedByTheWindowAndWhatIsHeld) {
  analysis::EventScript script;
  for (uint64_t i = 0; i < 40; ++i) script.Alloc(0x100000 + i * 0x1000, 64, {"held"});
  for (uint64_t i = 0; i < 5000; ++i) {
    script.Alloc(0x10000000, 64, {"passing"});
    script.Free(0x10000000);
  }
  LiveWindow window(script.definitions(), 200);
  for (size_t at = 0; at < script.batch().events.size(); at += 20) {
    const size_t end = std::min(script.batch().events.size(), at + 20);
    ASSERT_TRUE(window.OnEvents(Piece(script.batch(), at, end)).ok());
    ASSERT_LE(window.rows(), 220u);
  }
  EXPECT_GT(window.number(), 20u);
  EXPECT_EQ(HeldAt(window.SoFar(), 0).size(), 40u);
}

// A server that replays graphs allocates nothing but reports ranges all the time.
TEST_F(LiveWindowTest, MemoryIsBoundedIfNothingIsAllocatedButManyRangesAreRecorded) {
  analysis::EventScript script;
  for (uint64_t i = 0; i < 40; ++i) script.Alloc(0x100000 + i * 0x1000, 64, {"held"});
  for (uint64_t i = 0; i < 5000; ++i) {
    script.Begin("replay", i + 1);
    script.End("replay", i + 1);
  }
  LiveWindow window(script.definitions(), 200);
  for (size_t at = 0; at < script.batch().events.size(); at += 20) {
    const size_t end = std::min(script.batch().events.size(), at + 20);
    ASSERT_TRUE(window.OnEvents(Piece(script.batch(), at, end)).ok());
    ASSERT_LE(window.SoFar().side_events.size(), 260u);
  }
  EXPECT_GT(window.number(), 20u);
  EXPECT_EQ(HeldAt(window.SoFar(), 0).size(), 40u);
}

TEST_F(LiveWindowTest, WindowHoldsSeveralTimesWhatIsHeldHoweverMuchThatIs) {
  analysis::EventScript script;
  for (uint64_t i = 0; i < 1000; ++i) script.Alloc(0x100000 + i * 0x1000, 64, {"held"});
  for (uint64_t i = 0; i < 20000; ++i) {
    script.Alloc(0x10000000, 64, {"passing"});
    script.Free(0x10000000);
  }
  LiveWindow window(script.definitions(), 100);
  for (size_t at = 0; at < script.batch().events.size(); at += 100) {
    const size_t end = std::min(script.batch().events.size(), at + 100);
    ASSERT_TRUE(window.OnEvents(Piece(script.batch(), at, end)).ok());
  }
  // Consecutive windows of about 3,000 rows each, not one for every few events.
  EXPECT_GT(window.number(), 5u);
  EXPECT_LT(window.number(), 40u);
}

}  // namespace
}  // namespace gmt::viewer
