// Each test plays a traced process, lets the collector read its session, and reads the recording
// back.

#include "collector/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "collector/testing/collector_fixture.h"
#include "format/chunk_codec.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

void ExpectIdentity(const gmt::Losses& l) {
  EXPECT_EQ(l.written(), l.delivered() + l.overrun() + l.holes() + l.abandoned() + l.backlog());
}

TEST_F(CollectorTest, NormalExitLeavesACompleteRecordingWithAnExitSnapshot) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 256);
  target.Alloc(0x2000, 512);
  target.Free(0x1000);
  const Recording recording = ExitAndRead(target, 3);
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 2u);
  EXPECT_EQ(recording.Count(gmt::FREE), 1u);
  ASSERT_EQ(recording.snapshots.size(), 1u);
  EXPECT_EQ(recording.snapshots[0].name(), "exit");
  EXPECT_TRUE(recording.snapshots[0].exact());
  EXPECT_THAT(Recording::LiveOf(recording.snapshots[0]), ElementsAre(Pair(0x2000, 512)));
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::EXITED);
  EXPECT_EQ(recording.facts.exit().code(), 3);
  EXPECT_EQ(recording.facts.exit().known_by(), "shim");
  EXPECT_EQ(target.control().finished.load(), session::Handshake::kDone);
  ExpectIdentity(recording.facts.losses());
}

TEST_F(CollectorTest, EverythingWrittenBeforeTheEndIsReadHoweverLongItTakes) {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.ring = 1 << 18;
  FakeTarget target(sizes);
  Start(target);
  for (int i = 0; i < 100000; ++i) {
    target.Alloc(0x1000, 256);
    target.Free(0x1000);
  }
  target.Alloc(0x2000, 512);
  clock_.step_ns = kSecond;
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(recording.facts.losses().backlog(), 0u);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 100001u);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots[0]), ElementsAre(Pair(0x2000, 512)));
}

TEST_F(CollectorTest, HeaderAndFirstFactsAreWrittenBeforeAnyEvent) {
  FakeTarget target;
  Start(target);
  const Recording recording = ReadBack(bytes_);
  ASSERT_TRUE(recording.status.ok()) << recording.status;
  EXPECT_FALSE(recording.complete);
  EXPECT_EQ(recording.header.pid(), static_cast<uint64_t>(getpid()));
  EXPECT_EQ(recording.header.run_id(), "run-7");
  EXPECT_THAT(recording.facts.argv(), ElementsAre("python", "train.py"));
  EXPECT_EQ(recording.facts.executable(), "/usr/bin/python3");
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::RUNNING);
}

TEST_F(CollectorTest, GrowingFileLagsByLessThanASecond) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 256);
  ReadAll();
  const Recording recording = ReadBack(bytes_);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 1u);
  EXPECT_FALSE(recording.complete);
}

TEST_F(CollectorTest, EventCarriesTimeHeapApiAndThread) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x7000, 4096, {session::Space::kPinned, session::Memory::kPinned});
  const Recording recording = ExitAndRead(target);
  const auto alloc = std::find_if(recording.events.begin(), recording.events.end(),
                                  [](const auto& e) { return e.kind == gmt::ALLOC; });
  ASSERT_NE(alloc, recording.events.end());
  EXPECT_EQ(recording.String(alloc->heap), "host");
  EXPECT_EQ(recording.String(alloc->api), "cudaMalloc");
  EXPECT_EQ(alloc->thread, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(alloc->t_ns, 1000);
  EXPECT_EQ(alloc->duration_ns, 900u);
  EXPECT_FALSE(alloc->has(format::kHasDevice));
}

TEST_F(CollectorTest, ThreadIsNamedBeforeItsFirstEvent) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 1);
  target.Alloc(0x2000, 1);
  const Recording recording = ExitAndRead(target);
  ASSERT_EQ(recording.Count(gmt::THREAD), 1u);
  EXPECT_EQ(recording.events[0].kind, gmt::THREAD);
  EXPECT_EQ(recording.String(recording.events[0].name),
            process_->ThreadName(static_cast<uint32_t>(getpid())));
}

TEST_F(CollectorTest, FramesOfRealFilesGetNames) {
  FakeTarget target;
  // This test's own program, as if mapped at its link address.
  target.Map("/proc/self/exe", 0x1000, uint64_t{1} << 40);
  const uint32_t stack = target.Stack({0x2000});
  Start(target);
  target.Alloc(0x1000, 1, {}, stack);
  const Recording recording = ExitAndRead(target);
  EXPECT_TRUE(recording.complete);  // whether 0x1000 has a name depends on the linker
}

TEST_F(CollectorTest, LappedReaderRecoversTheLiveSetFromTheTable) {
  FakeTarget target;
  Start(target);
  target.Alloc(0xa000, 1);
  target.Alloc(0xb000, 2);
  ReadAll();
  target.Free(0xa000);
  target.Alloc(0xc000, 3);
  for (int i = 0; i < 3000; ++i) {
    target.Alloc(0xd000, 4);
    target.Free(0xd000);
  }
  target.Alloc(0xe000, 5);
  const Recording recording = ExitAndRead(target);
  const gmt::Snapshot& exit = recording.snapshots.back();
  EXPECT_TRUE(exit.exact()) << exit.inexact_because();
  EXPECT_THAT(Recording::LiveOf(exit),
              ElementsAre(Pair(0xb000, 2), Pair(0xc000, 3), Pair(0xe000, 5)));
  EXPECT_EQ(recording.LiveByEvents(), Recording::LiveOf(exit));
  EXPECT_GT(exit.losses().overrun(), 0u);
  ExpectIdentity(exit.losses());
  ASSERT_FALSE(recording.gaps.empty());
  EXPECT_EQ(recording.gaps[0].reason(), "overrun");
}

TEST_F(CollectorTest, RecoveredAllocationIsInTheGapAndHasTheFieldsOfTheTable) {
  FakeTarget target;
  Start(target);
  target.Alloc(0xa000, 1);
  ReadAll();
  target.Free(0xa000);
  target.Alloc(0xc000, 3);
  const int64_t allocated = static_cast<int64_t>(target.now_ns - target.start_ns());
  for (int i = 0; i < 3000; ++i) target.FailAlloc(1, 1);
  const Recording recording = ExitAndRead(target);
  size_t gap = 0;
  while (recording.events[gap].kind != gmt::GAP) ++gap;
  const format::Event& lost_free = recording.events[gap + 1];
  EXPECT_EQ(lost_free.kind, gmt::FREE);
  EXPECT_EQ(recording.String(lost_free.api), "(lost)");
  EXPECT_EQ(lost_free.address, 0xa000u);
  const format::Event& found = recording.events[gap + 2];
  EXPECT_EQ(found.kind, gmt::ALLOC);
  EXPECT_EQ(found.t_ns, allocated);
  EXPECT_LT(found.t_ns, recording.gaps[0].to_t_ns());
  EXPECT_EQ(recording.String(found.api), "cudaMalloc");
  EXPECT_FALSE(found.has(format::kHasDuration));
}

TEST_F(CollectorTest, LateCollectorHasTheLiveSetFromBeforeItsStart) {
  FakeTarget target;
  for (uint64_t i = 0; i < 2000; ++i) target.Alloc(0x10000 + i * 16, i);
  for (uint64_t i = 0; i < 2000; i += 2) target.Free(0x10000 + i * 16);
  Start(target);
  const Recording recording = ExitAndRead(target);
  const auto live = Recording::LiveOf(recording.snapshots.back());
  EXPECT_EQ(live.size(), 1000u);
  EXPECT_EQ(recording.LiveByEvents(), live);
}

TEST_F(CollectorTest, HoleOfADeadWriterIsAGapOfOneEvent) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 1);
  target.DieInTheMiddle();
  target.Alloc(0x2000, 2);
  const Recording recording = ExitAndRead(target);
  ASSERT_EQ(recording.gaps.size(), 1u);
  EXPECT_EQ(recording.gaps[0].reason(), "hole");
  EXPECT_EQ(recording.gaps[0].events(), 1u);
  EXPECT_EQ(recording.gaps[0].first_ticket(), 1u);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()),
              ElementsAre(Pair(0x1000, 1), Pair(0x2000, 2)));
  EXPECT_EQ(recording.facts.losses().holes(), 1u);
}

TEST_F(CollectorTest, FullLiveTableIsReportedOnlyIfItMattered) {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.live = 16;
  FakeTarget whole(sizes), lapped(sizes);
  Start(whole);
  for (uint64_t i = 0; i < 100; ++i) whole.Alloc(0x1000 + i, 1);
  Recording recording = ExitAndRead(whole);
  EXPECT_TRUE(recording.snapshots.back().exact());  // every event was read
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 100u);
  EXPECT_EQ(recording.snapshots.back().losses().live_full(), 84u);

  bytes_.clear();
  for (uint64_t i = 0; i < 2000; ++i) lapped.Alloc(0x1000 + i, 1);
  Start(lapped);
  recording = ExitAndRead(lapped);
  EXPECT_FALSE(recording.snapshots.back().exact());
  EXPECT_NE(recording.snapshots.back().inexact_because(), "");
}

TEST_F(CollectorTest, CallsBeforeTheSessionMakeSnapshotsInexact) {
  FakeTarget target;
  Start(target);
  target.control().counters[session::kBeforeSession].store(2);
  const Recording recording = ExitAndRead(target);
  EXPECT_FALSE(recording.snapshots.back().exact());
  EXPECT_EQ(recording.facts.losses().before_session(), 2u);
}

TEST_F(CollectorTest, FailedFreeRestoresTheAllocation) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 256);
  session::LiveValue freed;
  target.map().live().Find(session::Space::kDevice, 0x1000, &freed);
  target.Free(0x1000);
  target.FreeDone(0x1000, 700, freed);
  const Recording recording = ExitAndRead(target);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()), ElementsAre(Pair(0x1000, 256)));
}

TEST_F(CollectorTest, FreesAndRolesReferToTheRowsOfTheirAllocations) {
  FakeTarget target;
  Start(target);
  const Layer block = {session::Space::kBlock, session::Memory::kBlock};
  target.Alloc(0x1000, 2048);
  target.Alloc(0x1000, 512, block);
  session::Record role;
  role.kind = session::Kind::kRole;
  role.space = block.space;
  role.memory = block.memory;
  role.device = 0;
  role.value = 0x1000;
  role.size = session::kParameter;
  target.Write(role);
  target.Free(0x1000, block);
  target.Alloc(0x1000, 512, block);
  target.Free(0x1000, block);
  session::LiveValue freed;
  target.map().live().Find(session::Space::kDevice, 0x1000, &freed);
  target.Free(0x1000);
  target.FreeDone(0x1000, 700, freed);  // refused, so that the second one ends the same row
  target.Free(0x1000);
  target.FreeDone(0x1000, 0, freed);
  ExitAndRead(target);

  gmt::File file;
  ASSERT_TRUE(file.ParseFromString(bytes_));
  std::vector<uint32_t> distances, roles;
  for (const gmt::Chunk& chunk : file.chunk()) {
    gmt::Body body;
    ASSERT_TRUE(format::UnpackBody(chunk, &body).ok());
    const gmt::Returns& returns = body.events().returns();
    distances.insert(distances.end(), returns.distance().begin(), returns.distance().end());
    roles.insert(roles.end(), body.events().roles().row().begin(),
                 body.events().roles().row().end());
  }
  // Each row: how many acquisitions back its allocation is. The last value of a column is repeated.
  EXPECT_THAT(distances, ElementsAre(1, 1, 3));
  EXPECT_THAT(roles, ElementsAre(1));
}

TEST_F(CollectorTest, FreeOfAnUnknownAllocationIsKept) {
  FakeTarget target;
  Start(target);
  target.Free(0xdead000);
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(recording.Count(gmt::FREE), 1u);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()), IsEmpty());
}

TEST_F(CollectorTest, SegmentAndItsFirstBlockLiveSideBySide) {
  FakeTarget target;
  Start(target);
  const Layer block = {session::Space::kBlock, session::Memory::kBlock};
  target.Alloc(0x1000, 2048);
  target.Alloc(0x1000, 512, block);
  target.Free(0x1000, block);
  const Recording recording = ExitAndRead(target);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()), ElementsAre(Pair(0x1000, 2048)));
}

TEST_F(CollectorTest, OutOfMemoryTakesASnapshotOfThatMoment) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 256);
  target.FailAlloc(1 << 30, kCudaOutOfMemory);
  target.Free(0x1000);
  const Recording recording = ExitAndRead(target);
  const gmt::Snapshot* oom = recording.FindSnapshot("oom-1");
  ASSERT_NE(oom, nullptr);
  EXPECT_EQ(oom->reason(), "oom");
  EXPECT_THAT(Recording::LiveOf(*oom), ElementsAre(Pair(0x1000, 256)));
  EXPECT_THAT(Recording::LiveOf(*recording.FindSnapshot("exit")), IsEmpty());
  EXPECT_EQ(recording.Count(gmt::SNAPSHOT_TAKEN), 2u);
}

TEST_F(CollectorTest, OutOfMemorySnapshotsAreLimited) {
  FakeTarget target;
  Start(target);
  for (int i = 0; i < 40; ++i) {
    target.FailAlloc(1 << 30, kCudaOutOfMemory);
    target.FailAlloc(1 << 30, kCudaOutOfMemory);
    target.now_ns += kSecond;
  }
  const Recording recording = ExitAndRead(target);
  EXPECT_NE(recording.FindSnapshot("oom-3"), nullptr);
  EXPECT_EQ(recording.snapshots.size(), 4u);
  EXPECT_EQ(recording.Count(gmt::ALLOC_FAILED), 80u);
}

TEST_F(CollectorTest, OutOfMemorySnapshotsCanBeDisabled) {
  FakeTarget target(FakeTarget::SmallSizes(), "snapshot=exit");
  Start(target);
  target.FailAlloc(1 << 30, kCudaOutOfMemory);
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(recording.snapshots.size(), 1u);
}

TEST_F(CollectorTest, SnapshotShowsDriverCallsInProgress) {
  FakeTarget target;
  Start(target);
  target.map().in_flight().Begin(77, FakeTarget::kMalloc, 4096, target.start_ns() + 5);
  const Recording recording = ExitAndRead(target);
  ASSERT_EQ(recording.snapshots[0].in_flight_size(), 1);
  EXPECT_EQ(recording.snapshots[0].in_flight(0).thread(), 77u);
  EXPECT_EQ(recording.snapshots[0].in_flight(0).api(), "cudaMalloc");
  EXPECT_EQ(recording.snapshots[0].in_flight(0).since_t_ns(), 5);
}

TEST_F(CollectorTest, FullDiskStopsNothingAndTheFileIsCompleteLater) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 1);
  disk_space_ = 20;
  ReadAll();
  for (uint64_t i = 0; i < 3000; ++i) target.Alloc(0x2000 + (i % 10) * 16, i);
  ReadAll();
  disk_space_ = ~size_t{0};
  ReadAll();
  const Recording recording = ExitAndRead(target);
  EXPECT_TRUE(recording.complete);
  EXPECT_TRUE(recording.snapshots.back().exact());
  EXPECT_EQ(recording.LiveByEvents(), Recording::LiveOf(recording.snapshots.back()));
  EXPECT_EQ(recording.LiveByEvents().size(), 11u);
  EXPECT_TRUE(std::any_of(recording.facts.sources().begin(), recording.facts.sources().end(),
                          [](const auto& s) { return s.name() == "output"; }));
}

TEST_F(CollectorTest, DiskThatStaysFullIsAnErrorAndLeavesAReadableFile) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 1);
  ReadAll();
  disk_space_ = 10;
  target.Exit(0);
  EXPECT_FALSE(collector_->Run().ok());
  const Recording recording = ReadBack(bytes_);
  EXPECT_TRUE(recording.status.ok());
  EXPECT_EQ(recording.Count(gmt::ALLOC), 1u);
}

TEST_F(CollectorTest, StopRequestFinishesTheFileWhileTheTargetRunsOn) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x1000, 1);
  collector_->RequestStop();
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(bytes_);
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::RUNNING);
  EXPECT_FALSE(collector_->TargetHasEnded());
}

TEST_F(CollectorTest, WriterALapBehindIsFoundInTheTableAfterItsCommit) {
  FakeTarget target;
  Start(target);
  const session::RingWriter ring = target.map().ring_writer();
  const auto late = ring.Reserve();
  for (int i = 0; i < 1023; ++i) target.FailAlloc(1, 1);
  target.Alloc(0x2000, 2);  // finds the slot taken
  ReadAll();
  session::Record record;
  record.kind = session::Kind::kAlloc;
  record.space = session::Space::kDevice;
  record.memory = session::Memory::kDevice;
  record.value = 0x9000;
  record.size = 9;
  target.map().live().Insert(record.space, record.value, MakeLive(record, late.ticket));
  ring.Commit(late, session::Pack(record));
  ReadAll();
  const Recording recording = ExitAndRead(target);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()),
              ElementsAre(Pair(0x2000, 2), Pair(0x9000, 9)));
  EXPECT_EQ(recording.facts.losses().abandoned(), 1u);
  EXPECT_EQ(recording.facts.losses().overrun(), 1u);
}

TEST_F(CollectorTest, FailedFreeOfAnUnknownAllocationIsLookedUpInTheTable) {
  FakeTarget target;
  target.Alloc(0x1000, 256);
  session::LiveValue freed;
  target.map().live().Find(session::Space::kDevice, 0x1000, &freed);
  for (int i = 0; i < 2000; ++i) target.FailAlloc(1, 1);
  Start(target);
  target.Free(0x1000);
  for (int i = 0; i < 2000; ++i) target.FailAlloc(1, 1);
  ReadAll();
  target.FreeDone(0x1000, 700, freed);
  const Recording recording = ExitAndRead(target);
  EXPECT_THAT(Recording::LiveOf(recording.snapshots.back()), ElementsAre(Pair(0x1000, 256)));
  EXPECT_TRUE(recording.snapshots.back().exact());
}

TEST_F(CollectorTest, LiveSetStaysExactWhileTheReaderIsLappedRepeatedly) {
  FakeTarget target;
  Start(target);
  uint64_t next = 0;
  // Between any two rounds the process laps the ring, or nearly does.
  clock_.while_waiting = [&] {
    for (int i = 0; i < 1500 && next < 40000; ++i, ++next) {
      target.Alloc(0x1000 + (next % 300) * 16, next);
      if (next % 3 == 0) target.Free(0x1000 + (next % 300) * 16);
    }
    if (next == 40000) target.Exit(0);
  };
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(bytes_);
  std::map<uint64_t, uint64_t> live;
  target.map().live().Scan(
      [&](auto, uint64_t value, const auto& entry) { live[value] = entry.size; });
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()), live);
  EXPECT_EQ(recording.LiveByEvents(), live);
  ExpectIdentity(recording.facts.losses());
}

TEST(NextWaitTest, WaitsGrowWhenFewRecordsComeAndMoreWhenNoneDo) {
  uint64_t calm = kBusyWait, idle = kBusyWait;
  for (int i = 0; i < 10; ++i) {
    calm = NextWait(calm, 1, 65536);
    idle = NextWait(idle, 0, 65536);
  }
  EXPECT_EQ(calm, kCalmWait);
  EXPECT_EQ(idle, kIdleWait);
  EXPECT_EQ(NextWait(idle, 1, 65536), kCalmWait);
}

TEST(NextWaitTest, FillingRingIsReadSoon) {
  EXPECT_EQ(NextWait(kIdleWait, 65536 / 64, 65536), kCalmWait);
  EXPECT_EQ(NextWait(kIdleWait, 65536 / 64 + 1, 65536), kBusyWait);
  EXPECT_EQ(NextWait(kCalmWait, 2, 64), kBusyWait);
}

}  // namespace
}  // namespace gmt::collector
