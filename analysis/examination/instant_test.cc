#include "analysis/examination/instant.h"

#include <gtest/gtest.h>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {
namespace {

TEST(Instant, WordsOfTheCommandLine) {
  EXPECT_EQ(ParseAt("peak")->kind, At::kPeak);
  EXPECT_EQ(ParseAt("end")->kind, At::kEnd);
  EXPECT_EQ(ParseAt("oom")->kind, At::kOom);
  EXPECT_EQ(ParseAt("t:1.5")->t_ns, 1'500'000'000);
  EXPECT_EQ(ParseAt("snapshot:growth-2")->snapshot, "growth-2");
}

TEST(Instant, TimeIsNamedAsItWasGiven) {
  EventScript script;
  script.Alloc(0x1000, 10);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  for (const char* text : {"t:0", "t:10", "t:0.0015", "t:123456.789", "t:86400.000000001"})
    EXPECT_EQ(InstantOn(examination, *ParseAt(text), 0)->name, text);
}

TEST(Instant, OtherTextIsAnError) {
  for (const char* text : {"", "Peak", "t:", "t:-1", "t:nan", "t:1e300", "snapshot:", "step:0",
                           "step:x", "event:-1"}) {
    EXPECT_FALSE(ParseAt(text).ok()) << text;
  }
}

TEST(Instant, LastFailedAllocationIsTheOutOfMemory) {
  EventScript script;
  script.Failed(100);
  script.Alloc(0x1000, 10);
  script.Failed(200);
  script.Free(0x1000);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  const auto oom = InstantOn(examination, *ParseAt("oom"), 0);
  ASSERT_TRUE(oom.ok());
  EXPECT_EQ(oom->step, 1u);
  EXPECT_EQ(oom->t_ns, 3 * EventScript::kStep_ns);
}

TEST(Instant, ErrorsNameWhatTheRecordingLacks) {
  EventScript script;
  script.SnapshotTaken("exit");
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  EXPECT_TRUE(InstantOn(examination, *ParseAt("snapshot:exit"), 0).ok());
  EXPECT_EQ(InstantOn(examination, *ParseAt("snapshot:oom-1"), 0).status().message(),
            "no snapshot is called 'oom-1'; there is: exit");
  EXPECT_EQ(InstantOn(examination, *ParseAt("oom"), 0).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Instant, PeakIsThatOfTheDevice) {
  EventScript script;
  script.Alloc(0x1000, 10);
  script.Alloc(0x2000, 20).device = 1;
  script.Free(0x1000);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  EXPECT_EQ(InstantOn(examination, *ParseAt("peak"), 0)->step, 1u);
  EXPECT_EQ(InstantOn(examination, *ParseAt("peak"), 1)->step, 2u);
}

TEST(Instant, StepIsTheMomentWithMostBytesHeld) {
  EventScript script;
  for (uint64_t index = 1; index <= 3; ++index) {
    script.Mark("step", index);
    script.Alloc(0x1000 * index, 10);
    script.Alloc(0x9000, 100 * index);
    script.Free(0x9000);
  }
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  EXPECT_EQ(InstantOn(examination, *ParseAt("step:2"), 0)->step, 5u);
  EXPECT_EQ(InstantOn(examination, *ParseAt("step:9"), 0).status().message(),
            "there is no step 9; the recording has steps 1 to 2");
}

TEST(Instant, EventCountsBirthsAndDeaths) {
  EventScript script;
  script.Alloc(0x1000, 10);
  script.Free(0x1000);
  const Trace trace = script.Build();
  const Examination examination(trace, script.definitions());
  EXPECT_EQ(InstantOn(examination, *ParseAt("event:1"), 0)->step, 1u);
  EXPECT_FALSE(InstantOn(examination, *ParseAt("event:3"), 0).ok());
}

}  // namespace
}  // namespace gmt::analysis
