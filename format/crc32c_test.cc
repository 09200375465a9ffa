#include "format/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

TEST(Crc32cTest, MatchesThePublishedCheckValue) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32cByTable("123456789"), 0xE3069283u);
}

TEST(Crc32cTest, ChecksumOfEmptyTextIsZero) { EXPECT_EQ(Crc32c(""), 0u); }

TEST(Crc32cTest, InstructionAndTableAgreeAtEveryLength) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937 random(seed);
    std::string bytes;
    for (int length = 0; length < 300; ++length) {
      EXPECT_EQ(Crc32c(bytes), Crc32cByTable(bytes)) << length;
      bytes.push_back(static_cast<char>(random()));
    }
  });
}

}  // namespace
}  // namespace gmt::format
