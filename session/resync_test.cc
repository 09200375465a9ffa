// Tests the argument of docs/session.md, "Resynchronising", against an oracle. Threads allocate
// and free recycled addresses of a fake allocator and record this as the hooks do. A reader starts
// late, sleeps, is lapped and scans the table during all this, and must end with exactly the
// allocations of the oracle. If one rule is broken, the test must notice; an oracle that accepts
// everything would prove nothing.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

using LiveSizes = std::map<uint64_t, uint64_t>;  // address -> size

enum class Broken {
  kNothing,
  kFreesAreRecordedTooLate,  // after the real free, when the address may already be live again
  kLossesAreNotRepaired,     // the reader continues without a scan
};

// The oracle: an allocator that recycles addresses quickly.
class FakeAllocator {
 public:
  FakeAllocator(uint64_t addresses) {
    for (uint64_t i = 0; i < addresses; ++i) free_.push_back(0x7f0000000000 + i * 512);
  }
  uint64_t Allocate(uint64_t size, uint64_t random) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return 0;
    std::swap(free_[random % free_.size()], free_.back());
    const uint64_t address = free_.back();
    free_.pop_back();
    live_[address] = size;
    return address;
  }
  void Free(uint64_t address) {
    const std::lock_guard lock(mutex_);
    live_.erase(address);
    free_.push_back(address);
  }
  const LiveSizes& live() const { return live_; }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> free_;
  LiveSizes live_;
};

// The live allocations of the program, which any thread may free.
class Held {
 public:
  void Put(uint64_t address) {
    const std::lock_guard lock(mutex_);
    addresses_.push_back(address);
  }
  uint64_t Take(uint64_t random) {
    const std::lock_guard lock(mutex_);
    if (addresses_.empty()) return 0;
    std::swap(addresses_[random % addresses_.size()], addresses_.back());
    const uint64_t address = addresses_.back();
    addresses_.pop_back();
    return address;
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> addresses_;
};

// A traced thread.
class Tracee {
 public:
  Tracee(const SessionMap& map, FakeAllocator* allocator, Held* held, Broken broken)
      : ring_(map.ring_writer()),
        live_(map.live()),
        allocator_(allocator),
        held_(held),
        broken_(broken) {}

  void Allocate(uint64_t random) {
    const uint64_t size = random >> 20;
    const uint64_t address = allocator_->Allocate(size, random);
    if (address == 0) return;
    Record record = NewRecord(Kind::kAlloc, address);
    record.size = size;
    const auto reservation = ring_.Reserve();
    LiveValue live;
    live.ticket = reservation.ticket;
    live.size = size;
    live_.Insert(record.space, address, live);
    ring_.Commit(reservation, Pack(record));
    held_->Put(address);
  }

  void Free(uint64_t random) {
    const uint64_t address = held_->Take(random);
    if (address == 0) return;
    if (broken_ == Broken::kFreesAreRecordedTooLate) {
      allocator_->Free(address);
      std::this_thread::yield();
      return RecordFree(address);
    }
    RecordFree(address);
    allocator_->Free(address);
  }

 private:
  void RecordFree(uint64_t address) {
    const auto reservation = ring_.Reserve();
    LiveValue live;
    live_.Erase(Space::kDevice, address, &live);
    ring_.Commit(reservation, Pack(NewRecord(Kind::kFree, address)));
  }

  static Record NewRecord(Kind kind, uint64_t address) {
    Record record;
    record.kind = kind;
    record.space = Space::kDevice;
    record.memory = Memory::kDevice;
    record.value = address;
    return record;
  }

  RingWriter ring_;
  LiveTable live_;
  FakeAllocator* allocator_;
  Held* held_;
  Broken broken_;
};

// The simple, slow reader described in docs/session.md.
class Reader {
 public:
  Reader(const SessionMap& map, Broken broken)
      : map_(map), ring_(map.ring_reader()), broken_(broken) {}

  // Reads until the ring is empty, then repairs losses.
  void CatchUp() {
    while (Step()) {
    }
    if (Disturbed()) exact_ = false;
    if (broken_ == Broken::kLossesAreNotRepaired) exact_ = true;
    if (!exact_ && !replaying()) Scan();
  }

  bool exact() const { return exact_; }
  int scans() const { return scans_; }
  RingLosses losses() const { return ring_.losses(); }
  LiveSizes live() const {
    LiveSizes contents;
    for (const auto& [address, entry] : live_) contents[address] = entry.second;
    return contents;
  }

 private:
  bool Step() {
    Record record;
    uint64_t ticket;
    RingReader::Lost lost;
    const auto outcome = ring_.Next(&record, &ticket, &lost);
    const RingLosses l = ring_.losses();
    EXPECT_EQ(l.written, l.delivered + l.overrun + l.holes + l.abandoned + l.backlog);
    if (outcome == RingReader::Outcome::kLost) {
      if (lost.why == RingReader::Loss::kAbandoned)
        watched_[lost.first] = ring_.CommitWord(lost.first);
      exact_ = false;
      replay_until_ = 0;
    }
    if (outcome == RingReader::Outcome::kRecord) Apply(record, ticket);
    if (replaying() && ring_.position() >= replay_until_) {
      replay_until_ = 0;
      exact_ = true;
    }
    return outcome == RingReader::Outcome::kRecord || outcome == RingReader::Outcome::kLost;
  }

  void Apply(const Record& record, uint64_t ticket) {
    const auto it = live_.find(record.value);
    if (it != live_.end() && it->second.first > ticket) return;
    if (record.kind == Kind::kAlloc) {
      live_[record.value] = {ticket, record.size};
    } else if (it != live_.end()) {
      live_.erase(it);
    }
  }

  void Scan() {
    ++scans_;
    live_.clear();
    map_.live().Scan([&](Space, uint64_t value, const LiveValue& live) {
      live_[value] = {live.ticket, live.size};
    });
    replay_until_ = ring_.tail();
    if (ring_.position() >= replay_until_) {
      replay_until_ = 0;
      exact_ = true;
    }
  }

  bool Disturbed() {
    const uint64_t abandoned = map_.control().counters[kAbandoned].load(std::memory_order_acquire);
    bool disturbed = abandoned != abandoned_seen_;
    abandoned_seen_ = abandoned;
    for (auto it = watched_.begin(); it != watched_.end();) {
      const bool changed = ring_.CommitWord(it->first) != it->second;
      disturbed |= changed;
      it = changed ? watched_.erase(it) : std::next(it);
    }
    if (disturbed) replay_until_ = 0;
    return disturbed;
  }

  bool replaying() const { return replay_until_ != 0; }

  SessionMap map_;
  RingReader ring_;
  Broken broken_;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> live_;  // address -> ticket, size
  std::map<uint64_t, uint64_t> watched_;
  uint64_t abandoned_seen_ = 0;
  uint64_t replay_until_ = 0;
  bool exact_ = true;
  int scans_ = 0;
};

// Totals over one or more processes.
struct Tally {
  uint64_t processes = 0, events = 0, read = 0, scans = 0;
  uint64_t missing = 0, phantom = 0, wrong_size = 0;

  uint64_t wrong() const { return missing + phantom + wrong_size; }
  void Compare(const LiveSizes& truth, const LiveSizes& read_back) {
    for (const auto& [address, size] : truth) {
      const auto it = read_back.find(address);
      missing += it == read_back.end();
      wrong_size += it != read_back.end() && it->second != size;
    }
    for (const auto& [address, size] : read_back) phantom += truth.count(address) == 0;
  }
};

// Simulates one process from its first to its last allocation.
void Live(uint32_t seed, Broken broken, Tally* tally) {
  std::mt19937_64 random(seed);
  SessionSizes sizes = SmallSizes();
  sizes.ring = uint64_t{64} << random() % 5;
  sizes.live = 2048;
  ScratchSession session(sizes);
  FakeAllocator allocator(700);
  Held held;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, thread_seed = random()] {
      std::mt19937_64 choices(thread_seed);
      Tracee tracee(session.map(), &allocator, &held, broken);
      while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t choice = choices();
        choice % 2 ? tracee.Allocate(choice >> 1) : tracee.Free(choice >> 1);
        if (choice % 64 == 0) std::this_thread::yield();
      }
    });
  }
  const auto pause = [&](uint64_t most_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % most_us));
  };
  pause(5000);  // the reader is late
  Reader reader(session.map(), broken);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < end) {
    reader.CatchUp();
    if (random() % 4 == 0) pause(1000);  // and is lapped
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3 || !reader.exact(); ++i) reader.CatchUp();
  EXPECT_EQ(reader.losses().backlog, 0u);
  ++tally->processes;
  tally->events += reader.losses().written;
  tally->read += reader.losses().delivered;
  tally->scans += static_cast<uint64_t>(reader.scans());
  tally->Compare(allocator.live(), reader.live());
}

TEST(ResyncTest, LateAndLappedReaderEndsWithTheExactLiveSet) {
  Tally tally;
  ForEachSeed(SeedsUpTo(36), [&](uint32_t seed) {
    Live(seed, Broken::kNothing, &tally);
    EXPECT_EQ(tally.missing, 0u);
    EXPECT_EQ(tally.phantom, 0u);
    EXPECT_EQ(tally.wrong_size, 0u);
  });
  std::printf(
      "%llu processes, %llu events, %llu of them read, %llu scans: %llu missing, %llu phantom, "
      "%llu of wrong size\n",
      static_cast<unsigned long long>(tally.processes),
      static_cast<unsigned long long>(tally.events), static_cast<unsigned long long>(tally.read),
      static_cast<unsigned long long>(tally.scans), static_cast<unsigned long long>(tally.missing),
      static_cast<unsigned long long>(tally.phantom),
      static_cast<unsigned long long>(tally.wrong_size));
}

// Expects an error in at least one of several processes.
void ExpectWrong(Broken broken) {
  constexpr uint32_t kMaxProcesses = 400;
  Tally tally;
  for (uint32_t seed = 1; tally.wrong() == 0 && seed <= kMaxProcesses; ++seed)
    Live(seed, broken, &tally);
  EXPECT_NE(tally.wrong(), 0u) << "in " << kMaxProcesses << " processes";
}

TEST(ResyncTest, OracleDetectsAFreeRecordedTooLate) {
  ExpectWrong(Broken::kFreesAreRecordedTooLate);
}

TEST(ResyncTest, OracleDetectsAReaderThatDoesNotRescan) {
  ExpectWrong(Broken::kLossesAreNotRepaired);
}

}  // namespace
}  // namespace gmt::session
