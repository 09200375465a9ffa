// Compares pages of random lists of events with a plain list of all events.

#include "viewer/questions/event_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"
#include "viewer/questions/questions.h"
#include "viewer/questions/questions_json.h"
#include "viewer/testing/random_recording.h"

namespace gmt::viewer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kLists = 12;

using Entries = std::vector<EventList::Entry>;

Entries OfKinds(const Entries& all, uint32_t kinds) {
  Entries chosen;
  for (const EventList::Entry& entry : all) {
    if ((kinds >> static_cast<size_t>(entry.kind) & 1) != 0) chosen.push_back(entry);
  }
  return chosen;
}

TEST(EventListTest, PagesOfAnyKindsAreThoseOfAPlainList) {
  ForEachSeed(SeedsUpTo(kLists), [](uint32_t seed) {
    RandomRecording made(seed, 500);
    const analysis::Examination examination(made.trace(), made.definitions());
    for (const int32_t device : {0, 1, analysis::kHostDevice}) {
      // One chunk has everything, so the walk is the plain list.
      const EventList whole(examination, device, UINT32_MAX);
      const Entries all = whole.Page(kAllEventKinds, 0, UINT32_MAX);
      EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                                 [](const auto& a, const auto& b) { return a.event < b.event; }));
      const EventList list(examination, device, 7);
      for (int i = 0; i < 40; ++i) {
        const uint32_t kinds = i == 0 ? kAllEventKinds : made.Any(kAllEventKinds + 1);
        const Entries chosen = OfKinds(all, kinds);
        ASSERT_EQ(list.Total(kinds), chosen.size());
        const uint64_t offset = made.Any(static_cast<uint32_t>(chosen.size()) + 2);
        const uint32_t limit = 1 + made.Any(60);
        const auto begin = chosen.begin() +
                           std::min<ptrdiff_t>(static_cast<ptrdiff_t>(offset), std::ssize(chosen));
        const auto end = begin + std::min<ptrdiff_t>(limit, chosen.end() - begin);
        ASSERT_EQ(list.Page(kinds, offset, limit), Entries(begin, end));
        const uint32_t event = made.Any(made.trace().last_step() + 1);
        uint64_t position = 0;
        for (size_t k = 0; k < chosen.size() && chosen[k].event <= event; ++k) {
          if (k == 0 || chosen[k - 1].event != event) position = k;
        }
        ASSERT_EQ(list.Position(kinds, event), position);
      }
    }
  });
}

TEST(EventListTest, EveryBirthAndDeathIsListedOnItsDevice) {
  ForEachSeed(SeedsUpTo(kLists), [](uint32_t seed) {
    RandomRecording made(seed, 500);
    const analysis::Examination examination(made.trace(), made.definitions());
    const analysis::Rows& rows = made.trace().rows;
    std::vector<int> listed(made.trace().last_step() + 1);
    for (const int32_t device : {0, 1, analysis::kHostDevice}) {
      uint64_t waits = 0;
      for (const EventList::Entry& entry :
           EventList(examination, device).Page(kAllEventKinds, 0, UINT32_MAX)) {
        waits += entry.kind == EventKind::kFreeRequested;
        waits -= entry.kind == EventKind::kFreeCompleted;
        if (entry.kind > EventKind::kFreeRequested && entry.kind != EventKind::kSegmentAlloc &&
            entry.kind != EventKind::kSegmentFree) {
          continue;
        }
        const bool is_birth =
            entry.kind == EventKind::kAlloc || entry.kind == EventKind::kSegmentAlloc;
        EXPECT_EQ(is_birth ? rows.birth[entry.index] : rows.death[entry.index], entry.event);
        EXPECT_EQ(rows.device[entry.index], device);
        ++listed[entry.event];
      }
      const auto still_waiting = [&](analysis::RowId row) {
        return rows.device[row] == device && rows.PendingAfter(row, made.trace().last_step());
      };
      uint64_t at_the_end = 0;
      for (analysis::RowId row = 0; row < rows.count(); ++row) at_the_end += still_waiting(row);
      EXPECT_EQ(waits, at_the_end);
    }
    for (analysis::Step step = 1; step < listed.size(); ++step) {
      EXPECT_EQ(listed[step], made.trace().steps[step - 1].row == analysis::kNoRow ? 0 : 1);
    }
  });
}

TEST(EventListTest, ListNamesWhatHappened) {
  analysis::EventScript script;
  script.Alloc(0x10000000, 20 * kMiB, {"segment"});  // event 1
  script.Mark("epoch", 3);
  script.Block(0x10000000, 2 * kMiB, {"first", "main"});  // event 2
  script.FailedBlock(64 * kMiB, {"huge"});
  script.FreeBlock(0x10000000);                 // event 3
  script.Alloc(0x90000000, kMiB, {"library"});  // event 4
  script.Free(0x10000000);                      // event 5
  const analysis::Trace trace = script.Build();
  const analysis::Examination examination(trace, script.definitions());
  Questions questions(examination, {{0, analysis::kDriverHeap}});
  EventsQuery query;
  query.limit = 100;
  query.event = 3;
  const auto page = questions.AnswerEvents(query);
  ASSERT_TRUE(page.ok()) << page.status();
  std::vector<std::string> lines;
  for (const EventRow& row : page->rows) {
    const nlohmann::ordered_json json = ToJson(row);
    lines.push_back(json["event"].dump() + " " + json["kind"].get<std::string>() + " " +
                    json["bytes"].dump() + " " + json["heap"].get<std::string>() + " " +
                    json["text"].get<std::string>());
  }
  EXPECT_THAT(lines,
              ElementsAre("1 segment_alloc 20971520 driver segment (segment.py:10)",
                          "1 mark null  epoch 3", "2 alloc 2097152 pytorch first (first.py:10)",
                          "2 failed 67108864 pytorch huge (huge.py:10)",
                          "2 action null  retry that did not help",
                          "3 free 2097152 pytorch first (first.py:10)",
                          "4 alloc 1048576 driver library (library.py:10)",
                          "5 segment_free 20971520 driver segment (segment.py:10)",
                          "5 action null  cache emptied: 20.0 MiB to the driver"));
  EXPECT_EQ(page->total, 9u);
  EXPECT_EQ(page->position, 5u);
  EXPECT_THAT(page->counts, ElementsAre(2, 1, 0, 0, 0, 1, 1, 0, 0, 1, 2, 0, 1, 0));
  query.event = 6;
  EXPECT_THAT(questions.AnswerEvents(query).status().message(), HasSubstr("no event 6"));
}

}  // namespace
}  // namespace gmt::viewer
