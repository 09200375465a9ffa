// A traced process overwrites its own session with random data. Reading the session must not crash,
// access memory outside it or loop forever. Intended for AddressSanitizer; the end of the mapping
// also catches overruns.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

void Fill(const ScratchSession& session, std::mt19937_64& random) {
  const RingWriter ring = session.map().ring_writer();
  std::vector<uint64_t> frames(12);
  uint32_t like = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    Record record;
    record.kind = static_cast<Kind>(1 + random() % static_cast<uint64_t>(Kind::kSample));
    record.space = Space::kDevice;
    record.value = i;
    const CodeObject code = {.format = LineTable::kPython311,
                             .first_line = static_cast<uint32_t>(i % 10),
                             .function = session.map().texts().Intern("step"),
                             .line_table = &frames,
                             .line_table_bytes = i % 10};
    frames[0] = i % 20 + 1;
    frames[5] = InterpreterFrame(0x1000, i % 3);
    record.stack = like = AddStack(session.map().stacks(), frames, kStackPython, 0,
                                   {session.map().codes().Intern(code)}, like);
    session.map().texts().Intern(std::to_string(i % 20));
    session.map().live().Insert(Space::kDevice, i, LiveValue());
    ring.Commit(ring.Reserve(), Pack(record));
  }
}

void Scribble(const ScratchSession& session, uint64_t from, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 64; n > 0; --n) {
    const uint64_t at = from + random() % (session.size() - from - 8);
    const uint64_t interesting[] = {random(), 0, ~uint64_t{0}, uint64_t{1} << random() % 64,
                                    random() % 4096};
    const uint64_t word = interesting[random() % 5];
    std::memcpy(session.bytes() + at / 8 * 8, &word, 1 + random() % 8);
  }
}

// Reads everything that a collector reads. Returns the number of delivered records.
uint64_t ReadAll(const SessionMap& map) {
  RingReader ring = map.ring_reader();
  Record record;
  StackFrames stack;
  uint64_t ticket, records = 0;
  RingReader::Lost lost;
  for (uint64_t step = 0; step < 4 * map.count(kRing); ++step) {
    const auto outcome = ring.Next(&record, &ticket, &lost);
    if (outcome == RingReader::Outcome::kEmpty) break;
    if (outcome == RingReader::Outcome::kPending) ring.SkipPending();
    if (outcome != RingReader::Outcome::kRecord) continue;
    ++records;
    ReadStack(map, record.stack, &stack);
    ReadText(map, record.value);
  }
  map.live().Scan([&](Space, uint64_t value, const LiveValue& live) {
    ReadStack(map, live.stack, &stack);
    ReadText(map, value);
  });
  std::vector<ModuleCopy> modules;
  ReadNewModules(map, &modules);
  CodeCopy code;
  for (uint64_t id = 0; id < map.count(kArena) + 10; id += 7) {
    ReadStack(map, static_cast<uint32_t>(id), &stack);
    ReadCode(map, static_cast<uint32_t>(id), &code);
  }
  ForEachInfo({map.section<char>(kInfo), map.count(kInfo)},
              [](std::string_view, std::string_view) {});
  return records;
}

class ScribbleTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ScribbleTest, CorruptSessionDoesNotHarmItsReader) {
  ForEachSeed(SeedsUpTo(20), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    uint64_t opened_sessions = 0;
    ScratchSession session;
    Fill(session, random);
    for (int i = 0; i < 10; ++i) {
      Scribble(session, GetParam(), random);
      OpenedSession opened = OpenSession(session.fd());
      if (opened.map) {
        ++opened_sessions;
        ReadAll(opened.map);
      }
      CloseSession(&opened);
    }
    EXPECT_GE(opened_sessions, GetParam() == 0 ? 0u : 10u);
  });
}

INSTANTIATE_TEST_SUITE_P(FromTheHeaderOn, ScribbleTest, ::testing::Values(0));
INSTANTIATE_TEST_SUITE_P(BehindTheHeader, ScribbleTest, ::testing::Values(sizeof(Header)));

TEST(UntouchedSessionTest, DeliversAllRecordsOfTheRing) {
  std::mt19937_64 random(1);
  ScratchSession session;
  Fill(session, random);
  EXPECT_EQ(ReadAll(session.map()), SmallSizes().ring);
}

}  // namespace
}  // namespace gmt::session
