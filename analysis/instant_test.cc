#include "analysis/instant.h"

#include <gtest/gtest.h>

#include "analysis/event_script.h"

namespace gmt::analysis {
namespace {

TEST(Instant, WordsOfTheCommandLine) {
  EXPECT_EQ(ParseAt("peak")->kind, At::kPeak);
  EXPECT_EQ(ParseAt("end")->kind, At::kEnd);
  EXPECT_EQ(ParseAt("oom")->kind, At::kOom);
  EXPECT_EQ(ParseAt("t:1.5")->t_ns, 1'500'000'000);
  EXPECT_EQ(ParseAt("snapshot:growth-2")->snapshot, "growth-2");
}

TEST(Instant, AnythingElseIsRefused) {
  for (const char* text : {"", "Peak", "t:", "t:-1", "t:nan", "t:1e300", "snapshot:", "step:3"}) {
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
  const auto oom = Resolve(*ParseAt("oom"), trace);
  ASSERT_TRUE(oom.ok());
  EXPECT_EQ(oom->step, 1u);
  EXPECT_EQ(oom->t_ns, 3 * EventScript::kStep_ns);
}

TEST(Instant, WhatTheRecordingDoesNotHaveIsNamed) {
  EventScript script;
  script.SnapshotTaken("exit");
  const Trace trace = script.Build();
  EXPECT_TRUE(Resolve(*ParseAt("snapshot:exit"), trace).ok());
  EXPECT_EQ(Resolve(*ParseAt("snapshot:oom-1"), trace).status().message(),
            "no snapshot is called 'oom-1'; there is: exit");
  EXPECT_EQ(Resolve(*ParseAt("oom"), trace).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace gmt::analysis
