#include "format/event_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;

struct Columns {
  explicit Columns(const std::vector<int64_t>& differences) {
    EventTimeWriter writer(&widths, &bits);
    for (const int64_t difference : differences) writer.Add(difference);
    writer.Finish();
  }
  std::string widths, bits;
};

std::vector<int64_t> Read(const std::string& widths, const std::string& bits) {
  std::vector<int64_t> read;
  EventTimeReader reader(widths, bits);
  for (int64_t difference; reader.Next(&difference);) read.push_back(difference);
  return read;
}

// The obvious version: one character for each bit.
std::string BitsOneByOne(const std::vector<int64_t>& differences) {
  std::string digits;
  for (const int64_t difference : differences) {
    uint64_t rest =
        difference < 0 ? 0 - static_cast<uint64_t>(difference) : static_cast<uint64_t>(difference);
    for (; rest > 1; rest /= 2) digits += rest % 2 == 1 ? '1' : '0';
  }
  while (digits.size() % 8 != 0) digits += '0';
  std::string bytes;
  for (size_t at = 0; at < digits.size(); at += 8) {
    int byte = 0;
    for (size_t bit = 0; bit < 8; ++bit) byte |= (digits[at + bit] - '0') << bit;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

TEST(EventTimesTest, ExampleOfTheHeader) {
  const Columns columns({1, 2005, 0, -3});
  EXPECT_EQ(columns.widths, std::string("\x01\x0B\x00\x82", 4));
  EXPECT_EQ(columns.bits, std::string("\xD5\x07", 2));
}

TEST(EventTimesTest, DifferencesWithoutLowerBitsHaveOnlyWidths) {
  EXPECT_EQ(Columns({0, 1, 1, -1, 0}).bits, "");
}

TEST(EventTimesTest, LimitsOfTheTypeSurvive) {
  const std::vector<int64_t> limits = {INT64_MIN, INT64_MAX, 5, INT64_MIN + 1, -INT64_MAX};
  const Columns columns(limits);
  EXPECT_EQ(Read(columns.widths, columns.bits), limits);
}

TEST(EventTimesTest, RandomDifferencesAreThoseWrittenBitByBit) {
  ForEachSeed(SeedsUpTo(300), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int64_t> differences(random() % 100);
    for (int64_t& difference : differences) {
      difference = static_cast<int64_t>(random() >> random() % 64);
      if (random() % 4 == 0) difference = static_cast<int64_t>(-static_cast<uint64_t>(difference));
    }
    const Columns columns(differences);
    EXPECT_EQ(columns.bits, BitsOneByOne(differences));
    EXPECT_EQ(Read(columns.widths, columns.bits), differences);
  });
}

TEST(EventTimesTest, MissingBitsEndTheReading) {
  const Columns columns({300, 70000, 9});
  for (size_t size = 0; size < columns.bits.size(); ++size) {
    const size_t whole = size >= 3 ? 2 : size >= 1 ? 1 : 0;
    EXPECT_EQ(Read(columns.widths, columns.bits.substr(0, size)).size(), whole) << size;
  }
}

TEST(EventTimesTest, ImpossibleWidthEndsTheReading) {
  for (const int code : {65, 127, 128 + 65, 255}) {
    const std::string widths = {1, static_cast<char>(code), 1};
    EXPECT_THAT(Read(widths, std::string(64, 'x')), ElementsAre(1)) << code;
  }
}

}  // namespace
}  // namespace gmt::format
