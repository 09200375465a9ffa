#include "viewer/slab/slab.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace gmt::slab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the content of testdata/blocks.slab; the page's reader is tested on the same file.
std::string Example() {
  Writer writer("blocks");
  writer.AddField("hidden", 7);
  writer.AddField("names", {"forward\ttrain.py:41\tuser", "größer"});
  writer.AddArray("row", std::vector<uint32_t>{1, 4294967295, 3});
  writer.AddArray("flags", std::vector<uint8_t>{1, 2, 4});
  writer.AddArray("stream", std::vector<uint16_t>{65535});
  writer.AddArray("end", std::vector<double>{0.5, std::numeric_limits<double>::infinity()});
  writer.AddArray("run_bytes", std::vector<double>{});
  return std::move(writer).Finish();
}

std::string TestData(const std::string& name) {
  std::ifstream in(std::string(GMT_SLAB_TESTDATA "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SlabTest, RoundTrips) {
  const auto slab = Slab::Parse(Example());
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->kind(), "blocks");
  EXPECT_EQ(slab->Field("hidden"), 7);
  EXPECT_EQ(slab->Field("names")[1], "größer");
  EXPECT_TRUE(slab->Field("unheard of").is_null());
  EXPECT_THAT(*slab->Values<uint32_t>("row"), ElementsAre(1, 4294967295, 3));
  EXPECT_THAT(*slab->Values<uint8_t>("flags"), ElementsAre(1, 2, 4));
  EXPECT_THAT(*slab->Values<uint16_t>("stream"), ElementsAre(65535));
  EXPECT_THAT(*slab->Values<double>("end"), ElementsAre(0.5, HUGE_VAL));
  EXPECT_THAT(*slab->Values<double>("run_bytes"), IsEmpty());
}

TEST(SlabTest, MatchesTheFileThatThePageIsTestedOn) {
  EXPECT_EQ(Example(), TestData("blocks.slab"));
}

TEST(SlabTest, ArraysBeginAtMultiplesOfEight) {
  const auto slab = Slab::Parse(Example());
  for (const Slab::Array& array : slab->arrays()) EXPECT_EQ(array.offset % 8, 0) << array.name;
}

TEST(SlabTest, ArrayOfAnotherTypeIsMissing) {
  const auto slab = Slab::Parse(Example());
  EXPECT_FALSE(slab->Values<double>("row").ok());
  EXPECT_FALSE(slab->Values<uint32_t>("rows").ok());
}

TEST(SlabTest, NotANumberSurvivesInAnArray) {
  Writer writer("curve");
  writer.AddArray("live.min", std::vector<double>{std::nan(""), 1});
  const auto slab = Slab::Parse(std::move(writer).Finish());
  EXPECT_TRUE(std::isnan((*slab->Values<double>("live.min"))[0]));
}

TEST(SlabTest, InvalidUtf8IsReplaced) {
  Writer writer("flame");
  writer.AddField("names", {"bad \xff byte"});
  const auto slab = Slab::Parse(std::move(writer).Finish());
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->Field("names")[0], "bad \xEF\xBF\xBD byte");
}

TEST(SlabTest, AnotherVersionIsRefusedAndNamed) {
  std::string bytes = Example();
  bytes[4] = 2;
  EXPECT_THAT(Slab::Parse(bytes).status().message(), HasSubstr("version 2"));
}

}  // namespace
}  // namespace gmt::slab
