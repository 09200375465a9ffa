// How records of streams, devices and sources become events: each kind has exactly its own fields.

#include <gtest/gtest.h>

#include "collector/testing/collector_fixture.h"

namespace gmt::collector {
namespace {

using session::Action;
using session::Kind;

class ActivityTest : public CollectorTest {
 protected:
  // Returns the event that a record becomes.
  format::Event Translated(const session::Record& record) {
    target_.Write(record);
    return Last(record.kind);
  }
  format::Event Last(Kind kind) {
    recording_ = ExitAndRead(target_);
    for (auto e = recording_.events.rbegin(); e != recording_.events.rend(); ++e) {
      if (static_cast<int>(e->kind) == static_cast<int>(kind)) return *e;
    }
    ADD_FAILURE() << "no such event";
    return {};
  }
  void SetUp() override {
    CollectorTest::SetUp();
    Start(target_);
  }
  static session::Record Activity(Kind kind, Action action) {
    session::Record record;
    record.kind = kind;
    record.action = action;
    return record;
  }

  FakeTarget target_;
  Recording recording_;
};

TEST_F(ActivityTest, CreatedStreamHasPriorityAndFlags) {
  session::Record record = Activity(Kind::kStream, Action::kCreate);
  record.stream = 0x5000;
  record.priority = -5;
  record.flags = session::kNonBlocking | session::kSeenByCupti;
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.action), "create");
  EXPECT_EQ(event.stream, 0x5000u);
  EXPECT_EQ(event.priority, -5);
  EXPECT_EQ(event.flags, format::kNonBlocking | format::kSeenByCupti);
  EXPECT_FALSE(event.has(format::kHasObject));
}

TEST_F(ActivityTest, NamedStreamHasItsName) {
  session::Record record = Activity(Kind::kStream, Action::kName);
  record.stream = 0x5000;
  record.value = target_.Text("copies");
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.name), "copies");
  EXPECT_FALSE(event.has(format::kHasPriority));
}

TEST_F(ActivityTest, StreamZeroOfASynchronisationIsKnown) {
  session::Record record = Activity(Kind::kSync, Action::kStream);
  record.duration_ns = 700;
  const format::Event event = Translated(record);
  EXPECT_TRUE(event.has(format::kHasStream));
  EXPECT_FALSE(event.has(format::kHasObject));
  EXPECT_EQ(event.duration_ns, 700u);
}

TEST_F(ActivityTest, WaitForAnEventHasNoStream) {
  session::Record record = Activity(Kind::kSync, Action::kEvent);
  record.value = 0xe0;
  const format::Event event = Translated(record);
  EXPECT_EQ(event.object, 0xe0u);
  EXPECT_FALSE(event.has(format::kHasStream));
}

TEST_F(ActivityTest, CopyOnUnknownStreamHasNoStream) {
  session::Record record = Activity(Kind::kCopy, Action::kHostToDevice);
  record.size = 4096;
  record.flags = session::kStreamUnknown | session::kSeenByCupti;
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.action), "host_to_device");
  EXPECT_EQ(event.value, 4096u);
  EXPECT_EQ(event.flags, format::kSeenByCupti);
  EXPECT_FALSE(event.has(format::kHasStream));
}

TEST_F(ActivityTest, WitnessAddsNothingToTheLiveSet) {
  session::Record record = Activity(Kind::kWitness, Action::kAlloc);
  record.memory = session::Memory::kDevice;
  record.value = 0x7f0000000000;
  record.size = 1 << 20;
  const format::Event event = Translated(record);
  EXPECT_EQ(event.object, 0x7f0000000000u);
  EXPECT_EQ(event.value, 1u << 20);
  EXPECT_EQ(event.memory, gmt::DEVICE);
  ASSERT_FALSE(recording_.snapshots.empty());
  EXPECT_EQ(recording_.snapshots.back().live().count(), 0u);
}

TEST_F(ActivityTest, ModuleHasItsSize) {
  session::Record record = Activity(Kind::kModule, Action::kLoad);
  record.value = 0xabc0;
  record.size = 12345;
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.action), "load");
  EXPECT_EQ(event.object, 0xabc0u);
  EXPECT_EQ(event.value, 12345u);
}

TEST_F(ActivityTest, SourceChangeHasNameAndStatus) {
  session::Record record;
  record.kind = Kind::kSource;
  record.value = target_.Text("cupti");
  record.size = target_.Text("off: taken by another tool");
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.name), "cupti");
  EXPECT_EQ(recording_.String(event.text), "off: taken by another tool");
}

TEST_F(ActivityTest, RangeHasItsDomainAndColor) {
  session::Record record;
  record.kind = Kind::kRangeBegin;
  record.value = target_.Text("forward");
  record.stream = target_.Text("model");
  record.color = 0xff00ff00;
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.domain), "model");
  EXPECT_EQ(event.color, 0xff00ff00u);
  EXPECT_FALSE(event.has(format::kHasStream));
}

TEST_F(ActivityTest, RegionHasItsName) {
  session::Record record;
  record.kind = Kind::kAlloc;
  record.space = session::Space::kRegion;
  record.memory = session::Memory::kRegion;
  record.value = 0x7f0000001000;
  record.size = 512;
  record.stream = target_.Text("key-value cache");
  const format::Event event = Translated(record);
  EXPECT_EQ(recording_.String(event.heap), "nvtx");
  EXPECT_EQ(recording_.String(event.name), "key-value cache");
  EXPECT_FALSE(event.has(format::kHasStream));
}

}  // namespace
}  // namespace gmt::collector
