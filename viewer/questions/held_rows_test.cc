#include "viewer/questions/held_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/seeds/seeds.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;
using analysis::Step;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<RowId> ReferenceHeldAfter(const analysis::Trace& trace, Step event) {
  std::vector<RowId> held;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    if (trace.rows.HeldAfter(row, event) || trace.rows.PendingAfter(row, event)) {
      held.push_back(row);
    }
  }
  std::stable_sort(held.begin(), held.end(),
                   [&](RowId a, RowId b) { return trace.rows.birth[a] < trace.rows.birth[b]; });
  return held;
}

TEST(HeldRowsTest, EmptyRecordingHoldsNothing) {
  analysis::EventScript script;
  const analysis::Trace trace = script.Build();
  EXPECT_THAT(HeldRows(trace).After(0), IsEmpty());
}

TEST(HeldRowsTest, MemoryFromBeforeIsHeldUntilItIsFreed) {
  analysis::EventScript script;
  script.Alloc(0x1000, 64);
  script.Free(0x9000, 512);
  const analysis::Trace trace = script.Build();
  HeldRows held(trace);
  EXPECT_THAT(held.After(0), ElementsAre(1));
  EXPECT_THAT(held.After(1), ElementsAre(1, 0));
  EXPECT_THAT(held.After(2), ElementsAre(0));
}

TEST(HeldRowsTest, MatchesASearchOfAllRowsAtEveryEvent) {
  ForEachSeed(SeedsUpTo(20), [](uint32_t seed) {
    RandomRecording recording(seed, 600);
    for (const auto& [spacing, ids] :
         std::vector<std::pair<Step, size_t>>{{1, 1 << 20}, {7, 1 << 20}, {3, 40}, {5, 1}}) {
      HeldRows held(recording.trace(), spacing, ids);
      for (Step event = 0; event <= recording.trace().last_step(); ++event) {
        ASSERT_EQ(held.After(event), ReferenceHeldAfter(recording.trace(), event))
            << "event " << event;
      }
    }
  });
}

}  // namespace
}  // namespace gmt::viewer
