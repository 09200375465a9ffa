// Faults of the disk, and of users who change the files of a recording while it is written. The
// resulting recording must be readable and its live set exact, and every loss must be reported.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "collector/collector.h"
#include "collector/testing/fake_target.h"
#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::collector {
namespace {

// A file in memory with faults.
struct FakeDisk {
  std::string bytes;
  bool deleted = false;
  int failing = 0;  // errno of every write; 0: none
  std::function<ssize_t(size_t size)> before_write = [](size_t size) {
    return static_cast<ssize_t>(size);
  };

  OutputCalls Calls() {
    OutputCalls calls;
    calls.write = [this](const char* data, size_t size) -> ssize_t {
      const ssize_t n = failing == 0 ? before_write(size) : -1;
      if (failing != 0) errno = failing;
      if (n > 0) bytes.append(data, static_cast<size_t>(n));
      return n;
    };
    calls.stat = [this](OutputCalls::State* state) {
      *state = {bytes.size(), !deleted, true};
      return 0;
    };
    return calls;
  }
};

class OutputFaultsTest : public ::testing::Test {
 protected:
  absl::Status Start(FakeTarget& target, const std::string& note = "") {
    process_ = std::make_unique<Target>(target.map().header(), -1);
    CollectorDependencies deps = {target.map(), process_.get(), &clock_};
    deps.output_note = note;
    deps.next_output = [this]() -> absl::StatusOr<std::unique_ptr<OutputFile>> {
      if (read_only_) return absl::UnavailableError("read-only");
      return std::make_unique<OutputFile>(second_.Calls());
    };
    clock_.now_ns = std::max(clock_.now_ns, target.now_ns);
    std::unique_ptr<OutputFile> output = collector_ == nullptr
                                             ? std::make_unique<OutputFile>(first_.Calls())
                                             : collector_->TakeNextOutput();
    auto collector = Collector::Start(deps, std::move(output));
    if (collector.ok()) collector_ = *std::move(collector);
    return collector.status();
  }
  void Read() {
    clock_.now_ns += kSecond;
    while (collector_->Round()) {
    }
  }
  static void Work(FakeTarget& target, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      target.Alloc(0x1000 + i % 64 * 16, i);
      if (i % 3 == 0) target.Free(0x1000 + i % 64 * 16);
    }
  }
  // Returns the live set from the process's own table.
  static std::map<uint64_t, uint64_t> Truth(const FakeTarget& target) {
    std::map<uint64_t, uint64_t> live;
    target.map().live().Scan(
        [&](auto, uint64_t value, const auto& entry) { live[value] = entry.size; });
    return live;
  }
  static std::string Source(const Recording& recording, const std::string& name) {
    for (const auto& source : recording.facts.sources()) {
      if (source.name() == name) return source.value();
    }
    return "";
  }
  static void ExpectWhole(const Recording& recording, const FakeTarget& target) {
    ASSERT_TRUE(recording.status.ok()) << recording.status;
    EXPECT_TRUE(recording.complete);
    ASSERT_FALSE(recording.snapshots.empty());
    EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()), Truth(target));
    EXPECT_EQ(recording.LiveByEvents(), Truth(target));
    const gmt::Losses& l = recording.facts.losses();
    EXPECT_EQ(l.written(), l.delivered() + l.overrun() + l.holes() + l.abandoned() + l.backlog());
  }

  FakeClock clock_;
  FakeDisk first_, second_;
  bool read_only_ = false;
  std::unique_ptr<Target> process_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(OutputFaultsTest, RandomWriteFaultsLoseNothingSilently) {
  constexpr int kErrors[] = {EIO, ENOSPC, EDQUOT, EINTR, EAGAIN, EFBIG};
  ForEachSeed(SeedsUpTo(100), [&](uint32_t seed) {
    std::mt19937_64 random(seed);
    FakeTarget target;
    collector_ = nullptr;
    first_ = FakeDisk();
    ASSERT_TRUE(Start(target).ok());
    first_.before_write = [&](size_t size) -> ssize_t {
      if (random() % 3 != 0) return static_cast<ssize_t>(1 + random() % size);
      errno = kErrors[random() % std::size(kErrors)];
      return -1;
    };
    for (int round = 0; round < 20; ++round) {
      Work(target, random() % 900);
      Read();
    }
    first_.before_write = [](size_t size) { return static_cast<ssize_t>(size); };
    Read();
    target.Exit(0);
    EXPECT_TRUE(collector_->Run().ok());
    ExpectWhole(ReadBack(first_.bytes), target);
  });
}

TEST_F(OutputFaultsTest, FailureIsNamedInTheRecording) {
  FakeTarget target;
  ASSERT_TRUE(Start(target).ok());
  Work(target, 10);
  first_.failing = EIO;
  Read();
  first_.failing = 0;
  Read();
  target.Exit(0);
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(first_.bytes);
  ExpectWhole(recording, target);
  EXPECT_NE(Source(recording, "output").find("Input/output error"), std::string::npos);
}

TEST_F(OutputFaultsTest, DiskThatNeverRecoversKeepsTheSessionUncollected) {
  FakeTarget target;
  ASSERT_TRUE(Start(target).ok());
  Work(target, 10);
  first_.failing = ENOSPC;
  target.Exit(0);
  EXPECT_FALSE(collector_->Run().ok());
  EXPECT_EQ(target.control().finished.load(), session::Handshake::kNone);
}

TEST_F(OutputFaultsTest, AfterDeletionANewFileHasTheWholeLiveSet) {
  FakeTarget target;
  ASSERT_TRUE(Start(target).ok());
  Work(target, 3000);
  Read();
  first_.deleted = true;
  EXPECT_TRUE(absl::IsDataLoss(collector_->Run()));
  ASSERT_TRUE(Start(target, "began anew").ok());
  Work(target, 100);
  target.Exit(0);
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(second_.bytes);
  ExpectWhole(recording, target);
  EXPECT_EQ(Source(recording, "output"), "began anew");
  EXPECT_GT(recording.facts.losses().overrun(), 0u);  // events that only the deleted file had
  EXPECT_TRUE(recording.snapshots.back().exact()) << recording.snapshots.back().inexact_because();
}

TEST_F(OutputFaultsTest, LateTruncationIsNoticedBeforeTheSessionIsRemoved) {
  FakeTarget target;
  ASSERT_TRUE(Start(target).ok());
  Work(target, 100);
  Read();
  target.Exit(0);
  first_.bytes.clear();
  EXPECT_TRUE(absl::IsDataLoss(collector_->Run()));
  EXPECT_EQ(target.control().finished.load(), session::Handshake::kNone);
  ASSERT_TRUE(Start(target).ok());
  EXPECT_TRUE(collector_->Run().ok());
  ExpectWhole(ReadBack(second_.bytes), target);
  EXPECT_EQ(target.control().finished.load(), session::Handshake::kDone);
}

TEST_F(OutputFaultsTest, WithoutANewFileTheOldOneIsContinuedAndTheSessionStays) {
  FakeTarget target;
  ASSERT_TRUE(Start(target).ok());
  read_only_ = true;
  Work(target, 100);
  Read();
  first_.deleted = true;
  target.Exit(0);
  EXPECT_TRUE(absl::IsDataLoss(collector_->Run()));
  EXPECT_EQ(collector_->TakeNextOutput(), nullptr);
  EXPECT_EQ(target.control().finished.load(), session::Handshake::kNone);
  ExpectWhole(ReadBack(first_.bytes), target);  // a process that has it open can read all of it
}

}  // namespace
}  // namespace gmt::collector
