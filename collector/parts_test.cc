// A collector with bounded history: the files on disk, and what can be read from them.

#include "format/parts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "collector/collector.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

class PartsTest : public ::testing::Test {
 protected:
  void Start(const std::string& options) {
    target_ = std::make_unique<FakeTarget>(FakeTarget::SmallSizes(), options);
    clock_.now_ns = target_->now_ns;
    process_ = std::make_unique<Target>(target_->map().header(), -1);
    path_ = target_->directory() + "/run.gmt";
    fd_ = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    parts_ = std::make_unique<PartFiles>(fd_, [this](int fd) { return CallsOf(fd); });
    CollectorDependencies deps = {target_->map(), process_.get(), &clock_};
    deps.parts = parts_.get();
    auto collector = Collector::Start(deps, std::make_unique<OutputFile>(CallsOf(fd_)));
    ASSERT_TRUE(collector.ok()) << collector.status();
    collector_ = *std::move(collector);
  }
  ~PartsTest() override {
    collector_ = nullptr;
    if (fd_ >= 0) close(fd_);
  }

  // A file on a disk of size `disk_`.
  OutputCalls CallsOf(int fd) {
    OutputCalls calls = CallsOfFile(fd);
    calls.write = [this, fd](const char* bytes, size_t size) -> ssize_t {
      const uint64_t used = BytesOnDisk();
      const size_t n = std::min<size_t>(size, disk_ > used ? disk_ - used : 0);
      if (n > 0) return write(fd, bytes, n);
      errno = ENOSPC;
      return -1;
    };
    return calls;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(target_->directory())) {
      const bool is_part = file.path().string().find("run.") != std::string::npos;
      if (is_part && file.is_regular_file()) bytes += file.file_size();
    }
    return bytes;
  }

  // Plays one second, in which one block is allocated and another may be freed.
  void Second(uint64_t number) {
    Alloc(0x1000 * (number + 1), 16 * (number + 1));
    if (number % 3 == 2) Free(0x1000 * number);
    target_->now_ns = clock_.now_ns;
    while (collector_->Round()) {
    }
    clock_.now_ns += kSecond;
    collector_->Round();
  }
  void Alloc(uint64_t address, uint64_t size) {
    target_->Alloc(address, size, {}, stack_);
    live_[address] = size;
  }
  void Free(uint64_t address) {
    target_->Free(address);
    live_.erase(address);
  }
  void Exit() {
    target_->Exit(0);
    EXPECT_TRUE(collector_->Run().ok());
  }
  Recording ReadAll() const {
    auto source = format::OpenWithParts(path_);
    EXPECT_TRUE(source.ok()) << source.status();
    std::string bytes;
    EXPECT_TRUE((*source)->Read(0, (*source)->size(), &bytes).ok());
    return ReadBack(bytes);
  }
  std::string Part(uint32_t number) const { return format::PartPath(path_, number); }
  bool Exists(uint32_t number) const { return std::filesystem::exists(Part(number)); }
  const gmt::HeapCounts& Driver(const gmt::Aggregates& sums) const { return sums.heaps(0); }

  uint64_t disk_ = ~uint64_t{0};
  uint32_t stack_ = 0;
  std::map<uint64_t, uint64_t> live_;
  FakeClock clock_;
  std::unique_ptr<FakeTarget> target_;
  std::unique_ptr<Target> process_;
  std::unique_ptr<PartFiles> parts_;
  std::unique_ptr<Collector> collector_;
  std::string path_;
  int fd_ = -1;
};

TEST_F(PartsTest, PartsReadAsOneRecordingUnderOneName) {
  Start("max_time=80s");
  target_->Map("/lib/a.so", 0x10000, 0x20000);
  stack_ = target_->Stack({0x10100, 0x10200});
  for (uint64_t n = 0; n < 30; ++n) Second(n);
  Exit();
  EXPECT_TRUE(Exists(0));
  EXPECT_TRUE(Exists(1));
  EXPECT_FALSE(Exists(2) && Exists(3));
  const Recording recording = ReadAll();
  ASSERT_TRUE(recording.status.ok()) << recording.status;
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 30u);
  EXPECT_EQ(recording.LiveByEvents(), live_);
  EXPECT_EQ(Recording::LiveOf(*recording.FindSnapshot("exit")), live_);
  std::set<uint32_t> stacks;
  for (const format::Event& event : recording.events) {
    if (event.kind == gmt::ALLOC) stacks.insert(event.stack);
  }
  EXPECT_EQ(stacks.size(), 1u) << "one stack, one id, in all parts";
  EXPECT_EQ(stacks.count(0), 0u);
}

TEST_F(PartsTest, PartAloneHasTheLiveSetAndSumsFromBefore) {
  Start("max_time=80s");
  for (uint64_t n = 0; n < 25; ++n) Second(n);
  Exit();
  ASSERT_TRUE(Exists(1));
  const Recording alone = ReadBack(FileBytes(Part(1)));
  ASSERT_TRUE(alone.complete);
  EXPECT_EQ(alone.header.part(), 1u);
  EXPECT_EQ(alone.facts.ended_by(), "max_time");
  ASSERT_EQ(alone.aggregates.size(), 1u);
  const gmt::Aggregates& before = alone.aggregates[0];
  ASSERT_EQ(alone.snapshots.size(), 1u);
  const gmt::Snapshot& held = alone.snapshots[0];
  EXPECT_EQ(held.reason(), "part");
  EXPECT_TRUE(held.exact());
  EXPECT_EQ(held.live().count(), Driver(before).live_count());
  EXPECT_EQ(Driver(before).allocations() + alone.Count(gmt::ALLOC), 20u) << "ten per part";
  EXPECT_LT(Recording::TimeOf(held, 0), alone.events[0].t_ns) << "with its time of allocation";
}

TEST_F(PartsTest, OldEventsAreDroppedButStayCounted) {
  Start("max_time=8s,rotate=4");
  uint64_t allocated = 0;
  for (uint64_t n = 0; n < 100; ++n) {
    allocated += 16 * (n + 1);
    Second(n);
  }
  Exit();
  EXPECT_FALSE(Exists(0));
  const Recording recording = ReadAll();
  EXPECT_LT(recording.Count(gmt::ALLOC), 12u);
  EXPECT_GE(recording.Count(gmt::ALLOC), 5u);
  EXPECT_EQ(Recording::LiveOf(*recording.FindSnapshot("exit")), live_);
  const gmt::HeapCounts& sums = Driver(recording.aggregates.back());
  EXPECT_EQ(sums.allocations(), 100u);
  EXPECT_EQ(sums.allocated_bytes(), allocated);
  EXPECT_EQ(sums.live_count(), live_.size());
  EXPECT_EQ(recording.aggregates.back().events(), recording.aggregates.front().events() +
                                                      recording.events.size() -
                                                      recording.Count(gmt::SNAPSHOT_TAKEN));
}

TEST_F(PartsTest, KilledCollectorLeavesAReadableRecordingAtEveryMoment) {
  Start("max_time=8s,rotate=4");
  for (uint64_t n = 0; n < 40; ++n) {
    Second(n);
    const Recording recording = ReadAll();
    ASSERT_TRUE(recording.status.ok()) << recording.status;
    ASSERT_TRUE(recording.reader->damage().empty()) << recording.reader->damage()[0].what;
    // At most the events of the last half second are not flushed yet.
    EXPECT_GE(recording.events.back().t_ns, static_cast<int64_t>((n > 1 ? n - 1 : 0) * kSecond));
  }
}

TEST_F(PartsTest, FullDiskDropsTheOldestPartsFirst) {
  Start("max_time=800s");
  for (uint64_t n = 0; n < 10; ++n) Second(n);
  clock_.now_ns += 100 * kSecond;
  for (uint64_t n = 10; n < 13; ++n) Second(n);
  clock_.now_ns += 100 * kSecond;
  for (uint64_t n = 13; n < 15; ++n) Second(n);
  ASSERT_TRUE(Exists(0));
  ASSERT_TRUE(Exists(1));
  disk_ = BytesOnDisk();
  for (uint64_t n = 15; n < 20; ++n) Second(n);
  EXPECT_FALSE(Exists(0)) << "its space was needed";
  Exit();
  const Recording recording = ReadAll();
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(*recording.FindSnapshot("exit")), live_);
  EXPECT_EQ(Driver(recording.aggregates.back()).allocations(), 20u);
}

TEST_F(PartsTest, FullDiskLosesNoState) {
  Start("max_time=800s");
  for (uint64_t n = 0; n < 5; ++n) Second(n);
  disk_ = BytesOnDisk() + 10;
  clock_.now_ns += 100 * kSecond;
  for (uint64_t n = 5; n < 9; ++n) Second(n);
  disk_ = ~uint64_t{0};
  Exit();
  const Recording recording = ReadAll();
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(*recording.FindSnapshot("exit")), live_);
}

TEST_F(PartsTest, WithoutANextPartTheRecordingContinuesAndReportsIt) {
  Start("max_time=8s");
  std::filesystem::create_directory(path_ + ".next");
  for (uint64_t n = 0; n < 12; ++n) Second(n);
  Exit();
  const Recording recording = ReadAll();
  EXPECT_EQ(recording.Count(gmt::ALLOC), 12u);
  std::string note;
  for (const gmt::Setting& source : recording.facts.sources())
    if (source.name() == "output") note = source.value();
  EXPECT_NE(note.find("its size is not bounded"), std::string::npos) << note;
}

TEST_F(PartsTest, ProgramThatOutrunsTheCollectorLosesHistoryButNoState) {
  Start("max_time=8s,rotate=4");
  for (uint64_t n = 0; n < 20; ++n) {
    for (uint64_t call = 0; call < 3000; ++call) {  // three times the ring size
      const uint64_t address = 0x100 * (1 + (n * 7 + call * 13) % 500);
      if (live_.contains(address)) {
        Free(address);
      } else {
        Alloc(address, 16 + call);
      }
    }
    Second(1000 + n);
  }
  Exit();
  const Recording recording = ReadAll();
  EXPECT_TRUE(recording.complete);
  EXPECT_FALSE(recording.gaps.empty());
  const gmt::Snapshot& exit = *recording.FindSnapshot("exit");
  EXPECT_TRUE(exit.exact()) << exit.inexact_because();
  EXPECT_EQ(Recording::LiveOf(exit), live_);
  EXPECT_EQ(Driver(recording.aggregates.back()).live_count(), live_.size());
  EXPECT_FALSE(Exists(0));
}

TEST_F(PartsTest, RecordingWithoutALimitHasOneFileAndNoAggregates) {
  Start("");
  for (uint64_t n = 0; n < 5; ++n) Second(n);
  Exit();
  EXPECT_FALSE(Exists(0));
  EXPECT_TRUE(ReadAll().aggregates.empty());
}

}  // namespace
}  // namespace gmt::collector
