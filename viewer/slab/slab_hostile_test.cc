// Malicious slabs: false lengths, and thousands of mutations of a valid one.

#include <gmock/gmock.h>

#include <random>

#include "tests/seeds/seeds.h"
#include "viewer/slab/slab.h"

namespace gmt::slab {
namespace {

using testing::HasSubstr;

std::string WithHeader(const std::string& header, const std::string& rest = "") {
  std::string bytes = "GMTV";
  bytes += {1, 0, 0, 0};
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  bytes += header;
  while (bytes.size() % 8 != 0) bytes.push_back('\0');
  return bytes + rest;
}

std::string WhatIsWrong(const std::string& bytes) {
  return std::string(Slab::Parse(bytes).status().message());
}

// Checks that every array returned by the reader can be accessed.
void ReadAll(const std::string& bytes) {
  const auto slab = Slab::Parse(bytes);
  if (!slab.ok()) return;
  for (const Slab::Array& array : slab->arrays()) {
    ASSERT_LE(array.offset + array.count * SizeOf(array.type), bytes.size());
    (void)slab->Values<uint8_t>(array.name);
    (void)slab->Values<uint16_t>(array.name);
    (void)slab->Values<uint32_t>(array.name);
    (void)slab->Values<double>(array.name);
  }
}

TEST(SlabHostileTest, HeaderPastTheEndIsRefused) {
  std::string bytes = WithHeader("{}");
  bytes[11] = '\x7f';
  EXPECT_THAT(WhatIsWrong(bytes), HasSubstr("header extends past"));
}

TEST(SlabHostileTest, ArrayPastTheEndIsRefused) {
  EXPECT_THAT(
      WhatIsWrong(WithHeader(R"({"kind":"a","arrays":[{"name":"x","type":"f64","count":2}]})",
                             std::string(8, 'x'))),
      HasSubstr("array extends past"));
}

TEST(SlabHostileTest, OverflowingCountIsRefused) {
  for (const char* count : {"2305843009213693952", "18446744073709551615", "-1", "1.5", "1e30"}) {
    EXPECT_NE(WhatIsWrong(WithHeader(
                  std::string(R"({"kind":"a","arrays":[{"name":"x","type":"f64","count":)") +
                  count + "}]}")),
              "")
        << count;
  }
}

TEST(SlabHostileTest, ArraysThatTogetherExtendPastTheEndAreRefused) {
  const std::string array = R"({"name":"x","type":"u8","count":1})";
  EXPECT_NE(WhatIsWrong(WithHeader(R"({"kind":"a","arrays":[)" + array + "," + array + "]}", "x")),
            "");
}

TEST(SlabHostileTest, UnknownTypeIsRefused) {
  EXPECT_THAT(
      WhatIsWrong(WithHeader(R"({"kind":"a","arrays":[{"name":"x","type":"i64","count":0}]})")),
      HasSubstr("type"));
}

TEST(SlabHostileTest, HeaderOfAnotherStructureIsRefused) {
  for (const char* header :
       {"", "[]", "null", "{", R"({"kind":1,"arrays":[]})", R"({"kind":"a"})",
        R"({"kind":"a","arrays":[7]})", R"({"kind":"a","arrays":{"name":"x"}})", "\xff"}) {
    EXPECT_NE(WhatIsWrong(WithHeader(header)), "") << header;
  }
}

TEST(SlabHostileTest, HeaderOfAMillionBracketsIsRefused) {
  const std::string deep(1'000'000, '[');
  EXPECT_NE(WhatIsWrong(WithHeader(deep)), "");
  EXPECT_NE(WhatIsWrong(WithHeader(R"({"kind":"a","arrays":[],"fields":)" + deep)), "");
}

TEST(SlabHostileTest, SurvivesMutationsOfAValidSlab) {
  Writer writer("blocks");
  writer.AddField("hidden", 7);
  writer.AddArray("row", std::vector<uint32_t>{1, 2, 3});
  writer.AddArray("end", std::vector<double>{1, 2});
  const std::string good = std::move(writer).Finish();
  ForEachSeed(SeedsUpTo(20'000), [&good](uint32_t seed) {
    std::mt19937 random(seed);
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size() + 1);
    ReadAll(bytes);
  });
}

TEST(SlabHostileTest, SurvivesRandomBytes) {
  ForEachSeed(SeedsUpTo(20'000), [](uint32_t seed) {
    std::mt19937 random(seed);
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ReadAll(bytes);
    ReadAll(WithHeader(bytes));
  });
}

}  // namespace
}  // namespace gmt::slab
