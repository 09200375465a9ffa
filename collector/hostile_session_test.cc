// A traced process that overwrites its session while it is being collected. The recording may say
// anything; it must be readable and complete, and the collector must come to an end.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "collector/collector.h"
#include "collector/fake_target.h"

namespace gmt::collector {
namespace {

class HostileTarget : public FakeTarget {
 public:
  explicit HostileTarget(unsigned seed) : random_(seed) {}

  void Work() {
    for (int i = 0; i < 200; ++i) {
      Alloc(0x1000 + random_() % 500 * 16, random_(), {},
            Stack({random_() % 50 + 1, random_() % 50 + 1}));
      if (random_() % 2) Free(0x1000 + random_() % 500 * 16);
    }
  }
  void Scribble() {
    char* base = reinterpret_cast<char*>(&control());
    const size_t size = map().header().file_size - session::kControlOffset;
    for (int i = 0; i < 50; ++i) {
      const uint64_t words[] = {random_(), ~uint64_t{0}, 0, random_() % 5000,
                                uint64_t{1} << random_() % 64};
      std::memcpy(base + random_() % (size - 8), &words[random_() % 5], 8);
    }
    control().closing.store(session::Handshake::kNone);
  }

 private:
  std::mt19937_64 random_;
};

TEST(HostileSessionTest, CollectorSurvivesAnythingInIt) {
  const char* text = std::getenv("GMT_TEST_SEED");
  const unsigned first = text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10))
                                         : std::random_device()();
  for (unsigned seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE(seed);
    HostileTarget hostile(seed);
    Target process(hostile.map().header(), -1);
    FakeClock clock;
    clock.now_ns = hostile.now_ns;
    std::string bytes;
    auto collector =
        Collector::Start({hostile.map(), &process, &clock},
                         std::make_unique<OutputFile>([&](const char* data, size_t size) {
                           bytes.append(data, size);
                           return static_cast<ssize_t>(size);
                         }));
    ASSERT_TRUE(collector.ok());
    for (int round = 0; round < 20; ++round) {
      hostile.Work();
      hostile.Scribble();
      clock.now_ns += kSecond;
      (*collector)->Round();
    }
    hostile.Exit(0);
    EXPECT_TRUE((*collector)->Run().ok());
    const Recording recording = ReadBack(bytes);
    EXPECT_TRUE(recording.status.ok()) << recording.status;
    EXPECT_TRUE(recording.complete);
  }
}

}  // namespace
}  // namespace gmt::collector
