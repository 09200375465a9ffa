// The file of a session is truncated or deleted while it is read, or the reader's clock jumps.
// Truncated memory raises SIGBUS at its next use, but the collector must still complete the
// recording.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/sessions/bus_guard.h"
#include "collector/sessions/session_claim.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

// A session opened as its collector opens it: with a mapping of its own.
class CutSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BusGuard::Install();
    auto claim = SessionClaim::Take(target_.fd());
    ASSERT_TRUE(claim.ok()) << claim.status();
    claim_ = *std::move(claim);
    process_ = std::make_unique<Target>(target_.map().header(), -1);
    CollectorDependencies deps = {claim_->session(), process_.get(), &clock_};
    deps.is_cut = [this] { return claim_->IsCut(); };
    clock_.now_ns = target_.now_ns;
    auto collector =
        Collector::Start(deps, std::make_unique<OutputFile>([this](const char* b, size_t n) {
                           bytes_.append(b, n);
                           return static_cast<ssize_t>(n);
                         }));
    ASSERT_TRUE(collector.ok());
    collector_ = *std::move(collector);
  }
  void Read() {
    while (collector_->Round()) {
    }
  }
  void Cut(uint64_t size) {
    ASSERT_EQ(truncate(target_.path().c_str(), static_cast<off_t>(size)), 0);
  }

  FakeTarget target_;
  FakeClock clock_;
  std::string bytes_;
  std::unique_ptr<SessionClaim> claim_;
  std::unique_ptr<Target> process_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(CutSessionTest, EventsReadBeforeTheCutAreKeptAndTheRestIsReportedMissing) {
  for (uint64_t i = 0; i < 100; ++i) target_.Alloc(0x1000 + i * 16, i);
  Read();
  for (uint64_t i = 100; i < 200; ++i) target_.Alloc(0x1000 + i * 16, i);
  Cut(0);
  EXPECT_TRUE(collector_->Run().ok());
  EXPECT_TRUE(claim_->IsCut());
  const Recording recording = ReadBack(bytes_);
  ASSERT_TRUE(recording.status.ok()) << recording.status;
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 100u);
  EXPECT_EQ(recording.Count(gmt::FREE), 0u);  // no event is invented for unreadable memory
  const gmt::Snapshot& exit = recording.snapshots.back();
  EXPECT_FALSE(exit.exact());
  EXPECT_EQ(exit.inexact_because(), "the session was truncated while it was read");
}

TEST_F(CutSessionTest, CutAtAnyPlaceIsSurvived) {
  const session::Header header = target_.map().header();
  for (uint64_t i = 0; i < 3000; ++i) target_.Alloc(0x1000 + i % 2000 * 16, i);
  for (uint32_t id = session::kSectionCount; id-- > 0;) {
    Cut(header.sections[id].offset);
    clock_.now_ns += kSecond;
    Read();
  }
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(bytes_);
  EXPECT_TRUE(recording.status.ok()) << recording.status;
  EXPECT_TRUE(recording.complete);
}

TEST_F(CutSessionTest, DeletedSessionIsReadToItsEnd) {
  target_.Alloc(0x1000, 1);
  ASSERT_EQ(unlink(target_.path().c_str()), 0);
  target_.Alloc(0x2000, 2);
  target_.Exit(0);
  EXPECT_TRUE(collector_->Run().ok());
  EXPECT_FALSE(claim_->IsCut());
  EXPECT_TRUE(claim_->RemoveName().ok());
  const Recording recording = ReadBack(bytes_);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 2u);
  EXPECT_TRUE(recording.snapshots.back().exact());
}

TEST_F(CutSessionTest, TailThatMovesBackDoesNotDelayTheEnd) {
  target_.Alloc(0x1000, 1);
  target_.DieInTheMiddle();
  target_.Alloc(0x2000, 2);
  target_.Exit(0);
  clock_.while_waiting = [this] { target_.control().tail.store(0); };
  EXPECT_TRUE(collector_->Run().ok());
  EXPECT_TRUE(ReadBack(bytes_).complete);
}

TEST_F(CutSessionTest, ClockThatJumpsLosesNothing) {
  const uint64_t now = clock_.now_ns;
  for (const uint64_t jumped : {now, now + 86400 * kSecond, now / 2, uint64_t{0}, ~uint64_t{0}}) {
    clock_.now_ns = jumped;
    for (uint64_t i = 0; i < 300; ++i) target_.Alloc(0x1000 + i * 16, i);
    Read();
  }
  target_.Exit(0);
  EXPECT_TRUE(collector_->Run().ok());
  const Recording recording = ReadBack(bytes_);
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 1500u);
  EXPECT_EQ(recording.facts.losses().delivered(), 1500u);
}

TEST_F(CutSessionTest, LossAtTheEndOfAnOldSessionEndsWithTheSession) {
  target_.Alloc(0x1000, 1);
  target_.DieInTheMiddle();
  const int64_t newest = static_cast<int64_t>(target_.now_ns - target_.start_ns());
  target_.BeGone();
  process_ = std::make_unique<Target>(target_.map().header(), -1);
  claim_.reset();
  clock_.now_ns += 86400 * kSecond;  // collected a day later
  std::string bytes;
  auto collector = Collector::Start({target_.map(), process_.get(), &clock_},
                                    std::make_unique<OutputFile>([&](const char* b, size_t n) {
                                      bytes.append(b, n);
                                      return static_cast<ssize_t>(n);
                                    }));
  ASSERT_TRUE(collector.ok());
  EXPECT_TRUE((*collector)->Run().ok());
  const Recording recording = ReadBack(bytes);
  ASSERT_EQ(recording.gaps.size(), 1u);
  EXPECT_EQ(recording.gaps[0].to_t_ns(), newest);
  EXPECT_EQ(recording.facts.end_t_ns(), newest);
}

TEST(BusGuardTest, MissingPageReadsAsZerosAndIsCounted) {
  BusGuard::Install();
  const int fd = memfd_create("cut", 0);
  ASSERT_EQ(ftruncate(fd, 3 * 4096), 0);
  auto* bytes = static_cast<volatile char*>(
      mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  bytes[0] = 7;
  bytes[4096] = 7;
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  EXPECT_EQ(bytes[0], 7);
  EXPECT_EQ(bytes[4096], 0);
  bytes[2 * 4096] = 1;
  EXPECT_EQ(BusGuard::MissingPages(const_cast<char*>(bytes), 3 * 4096), 2u);
  EXPECT_EQ(BusGuard::MissingPages(const_cast<char*>(bytes), 4096), 0u);
  BusGuard::Forget(const_cast<char*>(bytes), 3 * 4096);
  EXPECT_EQ(BusGuard::MissingPages(const_cast<char*>(bytes), 3 * 4096), 0u);
  munmap(const_cast<char*>(bytes), 3 * 4096);
  close(fd);
}

TEST(BusGuardTest, OtherBusErrorsStillEndTheProcess) {
  const pid_t child = fork();
  if (child == 0) {
    BusGuard::Install();
    raise(SIGBUS);
    raise(SIGBUS);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

}  // namespace
}  // namespace gmt::collector
