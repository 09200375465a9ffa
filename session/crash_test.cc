// Kills a traced process at a random instruction and checks that exactly the committed data is
// there, complete.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

constexpr uint64_t kThreads = 3;

Record SelfChecking(uint64_t thread, uint64_t n) {
  Record record;
  record.kind = Kind::kAlloc;
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  record.thread = static_cast<uint32_t>(thread);
  record.value = 0x1000 + thread * 0x100000 + n % 50 * 16;
  record.size = n;
  record.stream = ~n;
  record.time_ns = n * 7;
  return record;
}

// Written by the child, read by the parent: the operations that each thread knows are complete.
struct Acknowledged {
  std::atomic<uint64_t> tickets[kThreads];  // last ticket + 1
};

[[noreturn]] void WriteUntilKilled(const SessionMap& map, Acknowledged* acknowledged) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const RingWriter ring = map.ring_writer();
      const LiveTable live = map.live();
      for (uint64_t n = 1;; ++n) {
        const Record record = SelfChecking(t, n);
        const auto reservation = ring.Reserve();
        LiveValue value;
        value.ticket = reservation.ticket;
        value.size = n;
        value.stream = ~n;
        live.Insert(record.space, record.value, value);
        ring.Commit(reservation, Pack(record));
        acknowledged->tickets[t].store(reservation.ticket + 1, std::memory_order_release);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(0);
}

// Returns how many processes to kill: GMT_TEST_KILLS, or `usual` if it is not set.
uint32_t Kills(uint32_t usual) {
  const char* text = getenv("GMT_TEST_KILLS");
  return text != nullptr ? static_cast<uint32_t>(strtoul(text, nullptr, 10)) : usual;
}

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() {
    shared_ = mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    acknowledged_ = new (shared_) Acknowledged();
  }
  ~CrashTest() override { munmap(shared_, sizeof(Acknowledged)); }

  void KillAfter(const SessionMap& map, std::chrono::microseconds time) {
    const pid_t child = fork();
    if (child == 0) WriteUntilKilled(map, acknowledged_);
    std::this_thread::sleep_for(time);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  // Reads everything available. Returns the delivered tickets.
  std::set<uint64_t> ReadAll(const SessionMap& map, RingLosses* losses) {
    std::set<uint64_t> delivered;
    RingReader reader = map.ring_reader();
    Record record;
    uint64_t ticket;
    RingReader::Lost lost;
    while (true) {
      const auto outcome = reader.Next(&record, &ticket, &lost);
      if (outcome == RingReader::Outcome::kEmpty) break;
      if (outcome == RingReader::Outcome::kPending) reader.SkipPending();
      if (outcome != RingReader::Outcome::kRecord) continue;
      EXPECT_EQ(record, SelfChecking(record.thread, record.size));
      delivered.insert(ticket);
    }
    *losses = reader.losses();
    return delivered;
  }

  void* shared_;
  Acknowledged* acknowledged_;
};

TEST_F(CrashTest, KillLosesNoCommittedRecordAndAtMostOneTicketPerThread) {
  uint64_t kills = 0, acknowledged = 0, torn = 0;
  RingLosses total;
  ForEachSeed(SeedsUpTo(Kills(100)), [&](uint32_t seed) {
    std::mt19937 random(seed);
    // A short ring wraps around within a time slice; a longer one still holds the last records of
    // each thread.
    SessionSizes sizes = SmallSizes();
    if (seed % 2 != 0) sizes.ring = 1 << 14;
    ScratchSession session(sizes);
    new (shared_) Acknowledged();
    KillAfter(session.map(), std::chrono::microseconds(500 + random() % 3000));
    RingLosses losses;
    const std::set<uint64_t> delivered = ReadAll(session.map(), &losses);
    EXPECT_EQ(losses.backlog, 0u);
    EXPECT_EQ(losses.written, losses.delivered + losses.overrun + losses.holes + losses.abandoned);
    EXPECT_LE(losses.holes, kThreads);
    const uint64_t oldest = losses.written - std::min(losses.written, session.map().count(kRing));
    for (const auto& word : acknowledged_->tickets) {
      const uint64_t ticket = word.load() - 1;
      if (word.load() == 0 || ticket < oldest || losses.abandoned != 0) continue;
      EXPECT_EQ(delivered.count(ticket), 1u) << ticket;
      ++acknowledged;
    }
    total.written += losses.written;
    total.delivered += losses.delivered;
    torn += losses.holes != 0;
    ++kills;
  });
  std::printf(
      "%llu kills, %llu events, %llu of them read and checked, %llu final ones that must be "
      "present; "
      "%llu kills tore a record\n",
      static_cast<unsigned long long>(kills), static_cast<unsigned long long>(total.written),
      static_cast<unsigned long long>(total.delivered),
      static_cast<unsigned long long>(acknowledged), static_cast<unsigned long long>(torn));
}

TEST_F(CrashTest, TableOfAKilledProcessHoldsOnlyCompleteEntries) {
  ForEachSeed(SeedsUpTo(Kills(30)), [&](uint32_t seed) {
    std::mt19937 random(seed);
    ScratchSession session;
    KillAfter(session.map(), std::chrono::microseconds(500 + random() % 2000));
    uint64_t entries = 0;
    session.map().live().Scan([&](Space, uint64_t, const LiveValue& live) {
      ++entries;
      EXPECT_EQ(live.stream, ~live.size);
    });
    EXPECT_LE(entries, kThreads * 50);
    uint64_t claimed = 0;
    const auto* keys = session.map().section<std::atomic<uint64_t>>(kLiveKeys);
    for (uint64_t i = 0; i < session.map().count(kLiveKeys); ++i)
      claimed += keys[i].load() == kKeyClaimed;
    EXPECT_LE(claimed, kThreads);
  });
}

}  // namespace
}  // namespace gmt::session
