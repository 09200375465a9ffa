#include "analysis/leaks/leak_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "analysis/leaks/leak_answer.h"
#include "analysis/leaks/leak_watcher.h"
#include "analysis/leaks/leaks.h"
#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::Truly;

bool IsLeak(const SiteGrowth& site) { return site.verdict.is_leak(); }

class LeakStateTest : public ::testing::Test {
 protected:
  void Run(EventScript& script, uint32_t cycles) {
    script.Mark("step", 0);
    for (uint32_t i = 0; i < cycles; ++i) {
      kept_.push_back(next_ += kMiB << 8);
      script.Block(kept_.back(), kMiB, {"append", "train"});
      const uint64_t brief = next_ += kMiB << 8;
      script.Block(brief, 64 * kMiB, {"forward", "train"});
      script.FreeBlock(brief);
      script.Mark("step", i + 1);
    }
  }
  // A request fails, and the program frees what it had kept.
  void Fail(EventScript& script) {
    script.FailedBlock(100 * kMiB, {"forward", "train"});
    for (const uint64_t block : kept_) script.FreeBlock(block);
    kept_.clear();
  }
  static LeakEvidence Watch(EventScript& script) {
    LeakWatcher watcher(script.definitions(), script.pid);
    for (const format::Event& event : script.batch().events) watcher.OnEvent(event);
    return watcher.Evidence();
  }
  // The last cycles of a program, with the state of a search that began earlier.
  static Trace Kept(EventScript& script, const LeakEvidence& found) {
    Trace trace = script.Build();
    trace.leak_state = std::make_shared<LeakState>(StateOf(found));
    return trace;
  }
  uint64_t next_ = 0;
  std::vector<uint64_t> kept_;  // addresses
};

TEST_F(LeakStateTest, SavedStateLeadsToTheSameConclusions) {
  EventScript script;
  Run(script, 250);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const LeakEvidence found = CollectEvidence(examination, {});
  const std::optional<LeakEvidence> loaded = EvidenceOf(StateOf(found));
  ASSERT_TRUE(loaded.has_value());
  const LeakReport a = ConcludeLeaks(found, examination.stacks());
  const LeakReport b = ConcludeLeaks(*loaded, examination.stacks());
  ASSERT_THAT(a.suspects, SizeIs(1));
  ASSERT_THAT(b.suspects, SizeIs(1));
  EXPECT_EQ(b.suspects[0].tier, LeakTier::kLeak);
  EXPECT_EQ(b.suspects[0].bytes, a.suspects[0].bytes);
  EXPECT_EQ(b.suspects[0].reason, a.suspects[0].reason);
  EXPECT_EQ(b.suspects[0].common_frame->function, "append");
  EXPECT_EQ(b.cycles.count, 250u);
  EXPECT_EQ(b.cycles.source, a.cycles.source);
  EXPECT_EQ(b.watched_ns, a.watched_ns);
  ASSERT_THAT(b.minima, SizeIs(1));
  EXPECT_EQ(b.minima[0].last_bytes, a.minima[0].last_bytes);
}

TEST_F(LeakStateTest, ARecordingOfTheLastCyclesCoversAllCycles) {
  EventScript week;
  Run(week, 900);
  const Trace whole = week.Build();
  const LeakEvidence found = CollectEvidence(Examination(whole, week.definitions()), {});
  EventScript hour;
  hour.Stack({"append", "train"});  // the ids of a recording are the same in all of its parts
  Run(hour, 30);
  const Trace last = Kept(hour, found);
  const Examination examination(last, hour.definitions());
  const LeakReport report = FindLeaks(examination);
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.cycles.count, 900u);
  EXPECT_GE(report.suspects[0].bytes, 890 * kMiB);  // of the 900 that are held
  EXPECT_TRUE(report.details_from_ns.has_value());
  LeakOptions window;
  window.window.to_ns = last.end_t_ns;
  EXPECT_FALSE(FindLeaks(examination, window).enough);
}

TEST_F(LeakStateTest, LeakOfAProgramThatRanOutOfMemoryIsFoundInItsLastCycles) {
  EventScript week;
  Run(week, 900);
  Fail(week);
  const LeakEvidence found = Watch(week);
  EventScript hour;
  Run(hour, 30);
  Fail(hour);
  const Trace last = Kept(hour, found);
  const LeakReport report =
      FindLeaksUntilFailure(Examination(last, hour.definitions()), last.failed.back().t_ns);
  ASSERT_THAT(report.suspects, SizeIs(1));
  EXPECT_EQ(report.suspects[0].tier, LeakTier::kLeak);
  EXPECT_GE(report.suspects[0].bytes, 890 * kMiB);
  EXPECT_EQ(report.cycles.count, 900u);
}

TEST_F(LeakStateTest, StateOfAProgramThatWentOnAfterAFailureIsNotThatOfTheFailure) {
  EventScript script;
  Run(script, 250);
  Fail(script);
  const LeakEvidence at_failure = Watch(script);
  EXPECT_THAT(at_failure.grown, SizeIs(1));
  Run(script, 2);  // its first mark ends the failing cycle
  EXPECT_EQ(Watch(script).cycles.count, 253u);
  EXPECT_THAT(Watch(script).grown, Not(Contains(Truly(IsLeak))));
  EventScript hour;
  Run(hour, 10);
  Fail(hour);
  Run(hour, 2);
  const Trace last = Kept(hour, at_failure);
  EXPECT_FALSE(
      FindLeaksUntilFailure(Examination(last, hour.definitions()), last.failed.back().t_ns).enough);
}

TEST_F(LeakStateTest, AnotherVersionIsNotRead) {
  gmt::LeakState state = StateOf({});
  state.set_version(kLeakStateVersion + 1);
  EXPECT_FALSE(EvidenceOf(state).has_value());
}

TEST_F(LeakStateTest, HostileStatesAreNoUndefinedBehaviour) {
  gmt::LeakState state;
  state.set_version(kLeakStateVersion);
  state.mutable_cycles()->set_count(std::numeric_limits<uint64_t>::max());
  state.mutable_cycles()->set_period_ns(std::numeric_limits<int64_t>::min());
  for (const double value : {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(), -1e300, 1e300}) {
    gmt::LeakSite* site = state.add_grown();
    site->set_heap(UINT32_MAX);
    site->set_stack(UINT32_MAX - 1);
    site->set_growth(UINT32_MAX);
    site->set_growth(1);
    site->mutable_bytes_per_cycle()->set_slope(value);
    site->set_onset(value);
    site->set_end(value);
    site->set_bytes(UINT64_MAX);
    site->set_count(UINT64_MAX);
    site->add_survivors(value);
    gmt::LeakMinima* minima = state.add_minima();
    minima->mutable_bytes_per_cycle()->set_slope(value);
    minima->set_last_bytes(UINT64_MAX);
    state.add_untracked()->mutable_bytes_per_cycle()->set_low(value);
  }
  state.add_loop_stack(7);  // only one of the columns
  const std::optional<LeakEvidence> evidence = EvidenceOf(state);
  ASSERT_TRUE(evidence.has_value());
  EventScript script;
  script.Block(1, 1, {"f"});
  StackTexts texts(script.definitions());
  const LeakReport report = ConcludeLeaks(*evidence, texts);
  EXPECT_THAT(std::string(AnswerOf(report, texts, 0).text()), HasSubstr("leak"));
}

}  // namespace
}  // namespace gmt::analysis
