// Records from PyTorch and from the program itself: blocks, out of memory, marks, ranges, requested
// snapshots.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collector/events/torch_source.h"
#include "collector/testing/collector_fixture.h"

namespace gmt::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class FrameworkTest : public CollectorTest {};

constexpr Layer kBlock = {session::Space::kBlock, session::Memory::kBlock};

session::Record BlockFailure(const FakeTarget& target, uint64_t size) {
  session::Record r;
  r.kind = session::Kind::kAllocFailed;
  r.space = kBlock.space;
  r.memory = kBlock.memory;
  r.device = 1;
  r.size = size;
  r.time_ns = target.now_ns;
  r.total_allocated = 4096;
  r.total_reserved = 2 << 20;
  return r;
}

TEST_F(FrameworkTest, OutOfMemoryOfAFrameworkCountsWhenItReportsIt) {
  FakeTarget target;
  Start(target);
  target.Map("/torch/lib/libc10_cuda.so", 0x7000, 0x8000);
  const uint32_t of_allocator = target.Stack({0x7100, 0x9100});
  target.Alloc(0x1000, 512, kBlock);
  session::Record refused;
  refused.kind = session::Kind::kAllocFailed;
  refused.memory = session::Memory::kDevice;
  refused.result = kCudaOutOfMemory;
  refused.size = 1 << 30;
  refused.stack = of_allocator;
  target.Write(refused);  // it frees what it can and tries again
  target.Write(BlockFailure(target, 1 << 30));
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(recording.Count(gmt::ALLOC_FAILED), 2u);
  ASSERT_EQ(recording.snapshots.size(), 2u);
  const gmt::Snapshot& oom = recording.snapshots[0];
  EXPECT_EQ(oom.name(), "oom-1");
  EXPECT_THAT(Recording::LiveOf(oom), ElementsAre(Pair(0x1000, 512)));
  ASSERT_EQ(oom.totals_size(), 1);
  EXPECT_EQ(oom.totals(0).heap(), "pytorch");
  EXPECT_EQ(oom.totals(0).device(), 1u);
  EXPECT_EQ(oom.totals(0).allocated_bytes(), 4096u);
  EXPECT_EQ(oom.totals(0).reserved_bytes(), 2u << 20);
}

TEST_F(FrameworkTest, RefusalOfAnotherLibraryIsOutOfMemoryAlsoWithAFramework) {
  FakeTarget target;
  Start(target);
  target.Map("/nccl/libnccl.so.2", 0x7000, 0x8000);
  target.Alloc(0x1000, 512, kBlock);
  session::Record refused;
  refused.kind = session::Kind::kAllocFailed;
  refused.memory = session::Memory::kDevice;
  refused.result = kCudaOutOfMemory;
  refused.stack = target.Stack({0x7100, 0x9100});
  target.Write(refused);
  EXPECT_NE(ExitAndRead(target).FindSnapshot("oom-1"), nullptr);
}

TEST_F(FrameworkTest, EachOutOfMemoryOfAFrameworkCounts) {
  FakeTarget target;
  Start(target);
  for (int i = 0; i < 5; ++i) target.Write(BlockFailure(target, 1 << 30));
  const Recording recording = ExitAndRead(target);
  EXPECT_NE(recording.FindSnapshot("oom-3"), nullptr);
  EXPECT_EQ(recording.FindSnapshot("oom-4"), nullptr);
  EXPECT_EQ(recording.Count(gmt::ALLOC_FAILED), 5u);
}

TEST_F(FrameworkTest, SnapshotRequestedByTheProcessHasItsName) {
  FakeTarget target;
  Start(target);
  session::Record wanted;
  wanted.kind = session::Kind::kSnapshot;
  wanted.value = target.Text("warm");
  target.Alloc(0x1000, 256);
  target.Write(wanted);
  target.Free(0x1000);
  target.Write(wanted);
  const Recording recording = ExitAndRead(target);
  const gmt::Snapshot* first = recording.FindSnapshot("warm");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->reason(), "request");
  EXPECT_THAT(Recording::LiveOf(*first), ElementsAre(Pair(0x1000, 256)));
  ASSERT_NE(recording.FindSnapshot("warm-2"), nullptr) << "names are unique";
  EXPECT_THAT(Recording::LiveOf(*recording.FindSnapshot("warm-2")), IsEmpty());
}

TEST_F(FrameworkTest, MemoryQueryIsASampleAndAppearsInTheNextSnapshot) {
  FakeTarget target;
  Start(target);
  session::Record measured;
  measured.kind = session::Kind::kSample;
  measured.device = 0;
  measured.value = 3 << 20;  // free
  measured.size = 10 << 20;
  target.Write(measured);
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(recording.Count(gmt::SAMPLE), 1u);
  ASSERT_EQ(recording.snapshots.back().samples_size(), 1);
  const gmt::Sample& sample = recording.snapshots.back().samples(0);
  EXPECT_EQ(sample.used_bytes(), 7u << 20);
  EXPECT_EQ(sample.total_bytes(), 10u << 20);
}

TEST_F(FrameworkTest, RangesAndMarksKeepTheirNumbers) {
  FakeTarget target;
  Start(target);
  session::Record note;
  note.value = target.Text("epoch");
  note.kind = session::Kind::kRangeBegin;
  note.size = 0x700000001;
  target.Write(note);
  note.kind = session::Kind::kRangeEnd;
  target.Write(note);
  note.kind = session::Kind::kMark;
  note.size = 12;
  target.Write(note);
  note.size = session::kNoIndex;
  target.Write(note);
  const Recording recording = ExitAndRead(target);
  std::vector<format::Event> notes;
  for (const format::Event& e : recording.events) {
    if (format::FamilyOf(e.kind) == format::Family::kNote) notes.push_back(e);
  }
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(recording.String(notes[0].name), "epoch");
  EXPECT_TRUE(notes[0].has(format::kHasRange));
  EXPECT_EQ(notes[0].range, notes[1].range);
  EXPECT_EQ(notes[2].index, 12u);
  EXPECT_FALSE(notes[3].has(format::kHasIndex));
}

TEST_F(FrameworkTest, BlockKeepsStreamTotalsAndForwardStack) {
  FakeTarget target;
  Start(target);
  session::Record block;
  block.kind = session::Kind::kAlloc;
  block.space = kBlock.space;
  block.memory = kBlock.memory;
  block.device = 0;
  block.value = 0x1000;
  block.size = 512;
  block.total_allocated = 1024;
  block.total_reserved = 2 << 20;
  block.stack = target.Stack({0x100});
  block.forward_stack = target.Stack({0x200});
  target.Write(block);
  block.kind = session::Kind::kFree;
  block.stack = block.forward_stack = 0;
  target.Write(block);
  const Recording recording = ExitAndRead(target);
  std::vector<format::Event> events;
  for (const format::Event& e : recording.events) {
    if (e.memory == gmt::BLOCK) events.push_back(e);
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(recording.String(events[0].heap), "pytorch");
  EXPECT_TRUE(events[0].has(format::kHasStream)) << "stream 0 is known";
  EXPECT_EQ(events[0].total_allocated, 1024u);
  EXPECT_EQ(events[0].total_reserved, 2u << 20);
  EXPECT_NE(events[0].forward_stack, 0u);
  EXPECT_NE(events[0].forward_stack, events[0].stack);
}

TEST_F(FrameworkTest, CallsOfTheAllocatorHaveAFlag) {
  FakeTarget target;
  Start(target);
  session::Record call;
  call.kind = session::Kind::kEventRecord;
  call.value = 0xe0;
  call.stream = 0x5000;
  call.size = 0x7f1234;
  call.flags = session::kCalledByAllocator;
  target.Write(call);
  const Recording recording = ExitAndRead(target);
  const auto event = std::find_if(recording.events.begin(), recording.events.end(),
                                  [](const auto& e) { return e.kind == gmt::EVENT_RECORD; });
  ASSERT_NE(event, recording.events.end());
  EXPECT_EQ(event->object, 0xe0u);
  EXPECT_EQ(event->stream, 0x5000u);
  EXPECT_EQ(event->value, 0x7f1234u);
  EXPECT_EQ(event->flags, format::kCalledByAllocator);
}

// ---- Why there are no blocks --------------------------------------------------------------------

class TorchSourceTest : public ::testing::Test {
 protected:
  std::string Source() { return TorchSource(info_, options_, said_, library_); }

  SessionInfo info_;
  session::Options options_;
  std::string said_, library_ = "/torch/lib/libc10_cuda.so";
};

TEST_F(TorchSourceTest, StatusReportedByTheProcessIsUsed) {
  said_ = "on";
  EXPECT_EQ(Source(), "on");
}

TEST_F(TorchSourceTest, ProcessWithoutPytorchHasNoBlocks) {
  library_.clear();
  EXPECT_THAT(Source(), HasSubstr("PyTorch's caching allocator requested no memory"));
}

TEST_F(TorchSourceTest, DisabledHeapIsTheFirstReason) {
  options_.heaps = session::kDriverHeap;
  EXPECT_EQ(Source(), "off: not asked for");
}

TEST_F(TorchSourceTest, AllocatorsWithoutBlocksAreNamed) {
  info_.settings = {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}};
  EXPECT_THAT(Source(), HasSubstr("cudaMallocAsync"));
  info_.settings = {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}};
  EXPECT_THAT(Source(), HasSubstr("PYTORCH_NO_CUDA_MEMORY_CACHING"));
}

TEST_F(TorchSourceTest, ReportUnderAnotherNameIsRecognised) {
  const std::string path = testing::TempDir() + "libc10_cuda.so";
  const auto with = [&](const std::string& name) {
    std::ofstream(path, std::ios::binary) << std::string("\0cudaMalloc\0", 12) << name << '\0';
    library_ = path;
    return Source();
  };
  EXPECT_THAT(with("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"),
              HasSubstr("reported no block"));
  EXPECT_THAT(with("_ZN3c1027reportMemoryUsageToProfilerERKNS_11MemoryUsageE"),
              HasSubstr("in an unknown way"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gmt::collector
