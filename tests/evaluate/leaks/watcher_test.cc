// Checks on synthetic programs with leaks and benign habits that the search for leaks in a running
// program (analysis/leaks/leak_watcher.h) reaches the same conclusions as one in its recording.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "analysis/leaks/leak_watcher.h"
#include "analysis/leaks/leaks.h"
#include "tests/evaluate/leaks/program.h"
#include "tests/seeds/seeds.h"

namespace gmt::evaluate {
namespace {

using analysis::LeakReport;
using analysis::LeakSuspect;

LeakReport Watch(RecordedProgram& program) {
  const format::Definitions& definitions = program.script().definitions();
  analysis::LeakWatcher watcher(definitions, program.script().pid);
  const format::EventBatch& batch = program.script().batch();
  for (const format::Event& event : batch.events) {
    event.kind == SAMPLE ? watcher.OnSample(event, batch.samples[event.detail])
                         : watcher.OnEvent(event);
  }
  analysis::StackTexts texts(definitions);
  return analysis::ConcludeLeaks(watcher.Evidence(), texts);
}

std::string TextOf(const LeakSuspect& suspect) {
  std::string text = absl::StrCat(std::string(NameOf(suspect.tier)), " ",
                                  std::string(NameOf(suspect.kind)), " device ", suspect.device);
  for (const analysis::LeakStack& stack : suspect.stacks) absl::StrAppend(&text, " ", stack.id);
  return text;
}
std::multiset<std::string> TextsOf(const LeakReport& report) {
  std::multiset<std::string> texts;
  for (const LeakSuspect& suspect : report.suspects) texts.insert(TextOf(suspect));
  return texts;
}

class WatcherTest : public ::testing::Test {
 protected:
  // Compares both searches on the same events.
  void Compare(const Plan& plan) {
    RecordedProgram program(plan);
    const LeakReport recorded = analysis::FindLeaks(program.examination());
    const LeakReport watched = Watch(program);
    // The number of recurring stacks depends on when the anchor was determined, so it is not
    // compared.
    const auto anchor = [](const std::string& source) {
      return source.substr(0, source.find(" and "));
    };
    EXPECT_EQ(anchor(watched.cycles.source), anchor(recorded.cycles.source));
    EXPECT_EQ(watched.cycles.count, recorded.cycles.count);
    EXPECT_EQ(watched.cycles.inferred, recorded.cycles.inferred);
    EXPECT_EQ(watched.enough, recorded.enough);
    EXPECT_EQ(TextsOf(watched), TextsOf(recorded));
    suspects_ += recorded.suspects.size();
    for (const LeakSuspect& suspect : recorded.suspects) CompareNumbers(suspect, watched);
    ASSERT_EQ(watched.minima.size(), recorded.minima.size());
    for (size_t i = 0; i < watched.minima.size(); ++i) {
      EXPECT_EQ(watched.minima[i].device, recorded.minima[i].device);
      EXPECT_EQ(watched.minima[i].last_bytes, recorded.minima[i].last_bytes);
      EXPECT_EQ(watched.minima[i].first_bytes, recorded.minima[i].first_bytes);
    }
  }
  void CompareNumbers(const LeakSuspect& suspect, const LeakReport& watched) {
    for (const LeakSuspect& other : watched.suspects) {
      if (TextOf(other) != TextOf(suspect)) continue;
      EXPECT_NEAR(other.bytes_per_cycle, suspect.bytes_per_cycle,
                  0.001 * std::abs(suspect.bytes_per_cycle))
          << TextOf(suspect);
      EXPECT_EQ(other.bytes, suspect.bytes) << TextOf(suspect);
      EXPECT_EQ(other.eta_ns.has_value(), suspect.eta_ns.has_value());
      return;
    }
  }

  size_t suspects_ = 0;
};

// Returns the plan for a seed, which determines the program and its number of cycles.
Plan PlanOf(uint32_t seed) {
  Plan plan;
  plan.seed = seed % 1'000'000;
  plan.cycles = 100 + static_cast<uint32_t>((plan.seed * 97 + seed / 1'000'000) % 400);
  return plan;
}

TEST_F(WatcherTest, AgreesWithTheRecordingIfMarksDelimitCycles) {
  const uint64_t programs = ForEachSeed(SeedsUpTo(11, {213285817}), [&](uint32_t seed) {
    Plan plan = PlanOf(seed);
    plan.long_queues = seed % 3 == 0;
    Compare(plan);
  });
  EXPECT_TRUE(suspects_ > 0 || programs == 1);
}

TEST_F(WatcherTest, AgreesWithTheRecordingOfAProgramThatRanBefore) {
  ForEachSeed(SeedsUpTo(8), [&](uint32_t seed) {
    Plan plan = PlanOf(seed);
    plan.attach_at = 200;
    Compare(plan);
  });
}

TEST_F(WatcherTest, AgreesWithTheRecordingIfCyclesAreInferred) {
  ForEachSeed(SeedsUpTo(6, {2661038664}), [&](uint32_t seed) {
    Plan plan = PlanOf(seed);
    plan.cycles = 300;
    plan.marks = false;
    Compare(plan);
  });
}

TEST_F(WatcherTest, NoVerdictBelowAHundredCycles) {
  ForEachSeed({1}, [](uint32_t seed) {
    Plan plan = PlanOf(seed);
    plan.cycles = 99;
    RecordedProgram program(plan);
    const LeakReport watched = Watch(program);
    EXPECT_EQ(watched.cycles.count, 99u);
    EXPECT_FALSE(watched.enough);
    EXPECT_TRUE(watched.suspects.empty());
  });
}

}  // namespace
}  // namespace gmt::evaluate
