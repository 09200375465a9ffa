#include "collector/events/live_leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "analysis/leaks/leak_state.h"
#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::collector {
namespace {

using ::testing::HasSubstr;

class LiveLeaksTest : public ::testing::Test {
 protected:
  void Cycles(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      script_.Block(next_ += kMiB << 8, kMiB, {"append", "train"});
      script_.Mark("step", ++cycle_);
    }
  }
  // Passes the new events on in the recorder's order: events first, their definitions with the
  // flush.
  void Flush() {
    const auto& events = script_.batch().events;
    for (; fed_ < events.size(); ++fed_) leaks_.OnEvent(events[fed_]);
    if (script_.builder().has_new()) leaks_.OnDefinitions(script_.builder().TakeNew());
    leaks_.OnFlush();
  }

  analysis::EventScript script_;
  LiveLeaks leaks_{4711, true};
  uint64_t next_ = 0, cycle_ = 0;
  size_t fed_ = 0;
};

TEST_F(LiveLeaksTest, VerdictNeedsEnoughCycles) {
  script_.Mark("step", 0);
  Cycles(50);
  Flush();
  EXPECT_EQ(leaks_.State().cycles().count(), 50u);
  EXPECT_EQ(leaks_.Answer().verdict(), gmt::LeakAnswer::TOO_EARLY);
  Cycles(200);
  Flush();
  gmt::LeakAnswer answer = leaks_.Answer();
  while (answer.verdict() == gmt::LeakAnswer::TOO_EARLY) {
    usleep(20000);
    answer = leaks_.Answer();
  }
  EXPECT_EQ(answer.verdict(), gmt::LeakAnswer::LEAK);
  EXPECT_EQ(answer.cycles().count(), 250u);
  EXPECT_THAT(std::string(answer.text()), HasSubstr("1.00 MiB per step on GPU 0 at append.py:10"));
  ASSERT_EQ(answer.suspects_size(), 1);
  EXPECT_EQ(answer.suspects(0).bytes_per_cycle().slope(), kMiB);
}

TEST_F(LiveLeaksTest, SavedStateHasNoNamesAndYieldsTheSameVerdict) {
  script_.Mark("step", 0);
  Cycles(250);
  Flush();
  const auto evidence = analysis::EvidenceOf(leaks_.State());
  ASSERT_TRUE(evidence.has_value());
  ASSERT_EQ(evidence->grown.size(), 1u);
  EXPECT_TRUE(evidence->grown[0].verdict.is_leak());
}

TEST_F(LiveLeaksTest, MemoryFromBeforeTheAttachIsCountedAndIsNoLeak) {
  for (uint64_t i = 0; i < 100; ++i)
    script_.Api(script_.Block((1 + i) << 32, 2 * kMiB), analysis::kBeforeAttachApi);
  script_.Mark("step", 0);
  for (uint64_t i = 0; i < 150; ++i) {
    if (i < 40) script_.FreeBlock((1 + i) << 32);
    const uint64_t brief = next_ += kMiB << 8;
    script_.Block(brief, kMiB, {"forward", "train"});
    script_.FreeBlock(brief);
    script_.Mark("step", i + 1);
  }
  Flush();
  const gmt::LeakAnswer answer = leaks_.Answer();
  EXPECT_EQ(answer.verdict(), gmt::LeakAnswer::NO_LEAK);
  ASSERT_EQ(answer.before_size(), 1);
  EXPECT_EQ(answer.before(0).bytes(), 200 * kMiB);
  EXPECT_EQ(answer.before(0).blocks(), 100u);
  EXPECT_EQ(answer.before(0).freed_blocks(), 40u);
}

}  // namespace
}  // namespace gmt::collector
