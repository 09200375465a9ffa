#include "session/record.h"

#include <gtest/gtest.h>

#include <random>

#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::session {
namespace {

Record RoundTrip(const Record& record) {
  Record back;
  EXPECT_TRUE(Unpack(Pack(record), &back));
  return back;
}

Record Allocation() {
  Record record;
  record.kind = Kind::kAlloc;
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  return record;
}

TEST(RecordTest, EveryFieldSurvivesPacking) {
  Record record = Allocation();
  record.device = 7;
  record.context = 200;
  record.api = 0xabc;
  record.result = 0xfff;
  record.thread = 0x3fffff;
  record.stack = 0xffffffff;
  record.time_ns = ~uint64_t{0};
  record.value = uint64_t{1} << 63;
  record.size = 123;
  record.stream = 456;
  record.duration_ns = kMaxDuration;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, BlockCarriesTotalsInsteadOfApiAndDuration) {
  Record record = Allocation();
  record.space = Space::kBlock;
  record.memory = Memory::kBlock;
  record.forward_stack = 9;
  record.total_allocated = uint64_t{1} << 40;
  record.total_reserved = uint64_t{3} << 40;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, BlockCarriesTheLayoutOfItsTensorBesideSizeAndStream) {
  Record record = Allocation();
  record.space = Space::kBlock;
  record.memory = Memory::kBlock;
  record.size = uint64_t{3} << 40;
  record.stream = 0x7fff'1234'5678;
  record.layout = 0xfedcba98;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, DriverMemoryOfAnySizeCarriesTheLayoutOfItsTensor) {
  Record record = Allocation();
  record.space = Space::kDevice;
  record.memory = Memory::kDevice;
  record.size = (uint64_t{1} << 40) - 1;
  record.stream = 0x7fff'1234'5678;
  record.layout = 0xfedcba98;
  EXPECT_EQ(RoundTrip(record), record);
  ++record.size;
  EXPECT_EQ(RoundTrip(record).layout, 0u);
  EXPECT_EQ(RoundTrip(record).size, record.size);
}

TEST(RecordTest, LayoutIsOmittedIfThereIsNoRoomForIt) {
  Record record = Allocation();
  record.memory = Memory::kBlock;
  record.layout = 5;
  record.size = 513;  // not a multiple of the block granularity
  EXPECT_EQ(RoundTrip(record).layout, 0u);
  EXPECT_EQ(RoundTrip(record).size, 513u);
  record.size = 512;
  record.stream = ~uint64_t{0};
  EXPECT_EQ(RoundTrip(record).layout, 0u);
  EXPECT_EQ(RoundTrip(record).stream, ~uint64_t{0});
}

TEST(RecordTest, ActivityCarriesActionFlagsAndPriority) {
  Record record;
  record.kind = Kind::kStream;
  record.action = Action::kCreate;
  record.flags = kSeenByCupti | kNonBlocking;
  record.priority = -5;
  record.stack = 7;
  record.stream = 0x5000;
  record.context = 3;
  record.duration_ns = 12;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, WitnessCarriesMemoryBesideItsAction) {
  Record record;
  record.kind = Kind::kWitness;
  record.action = Action::kAlloc;
  record.memory = Memory::kManaged;
  record.value = 0x7f00'0000'0000;
  record.size = 512;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, NoteCarriesItsColor) {
  Record record;
  record.kind = Kind::kRangeBegin;
  record.value = 11;
  record.stream = 12;
  record.color = 0xff00ff00;
  EXPECT_EQ(RoundTrip(record), record);
}

TEST(RecordTest, EveryActionHasAName) {
  for (int action = 1; action <= static_cast<int>(Action::kLast); ++action)
    EXPECT_STRNE(ActionName(static_cast<Action>(action)), "");
}

TEST(RecordTest, LongDurationSaturates) {
  Record record = Allocation();
  record.duration_ns = ~uint64_t{0};
  EXPECT_EQ(RoundTrip(record).duration_ns, kMaxDuration);
}

TEST(RecordTest, HostMemoryHasNoDevice) { EXPECT_EQ(RoundTrip(Allocation()).device, kNoDevice); }

TEST(RecordTest, UndefinedEnumValuesAreRejected) {
  Record back;
  const Words good = Pack(Allocation());
  EXPECT_TRUE(Unpack(good, &back));
  for (const uint64_t bad : {uint64_t{0}, uint64_t{0xff}, uint64_t{0xff01}, uint64_t{0xff0101}}) {
    Words words = good;
    words[6] = bad;
    EXPECT_FALSE(Unpack(words, &back)) << bad;
  }
}

TEST(RecordTest, UnpackedWordsSurvivePacking) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937_64 random(seed);
    int unpacked = 0;
    for (int i = 0; i < 20000; ++i) {
      Words words;
      for (uint64_t& word : words) word = random();
      words[6] &= ~uint64_t{0xf0e0c0};  // otherwise few words would be of a valid kind
      Record record;
      if (!Unpack(words, &record)) continue;
      ++unpacked;
      ASSERT_EQ(RoundTrip(record), record);
    }
    EXPECT_GT(unpacked, 1000);
  });
}

}  // namespace
}  // namespace gmt::session
