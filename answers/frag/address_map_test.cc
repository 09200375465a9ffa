#include "answers/frag/address_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "format/units.h"

namespace gmt::answers {
namespace {

using analysis::Piece;
using analysis::SegmentMap;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

SegmentMap Segment(uint64_t address, const std::vector<std::pair<Piece::Kind, uint64_t>>& pieces) {
  SegmentMap segment;
  segment.address = address;
  for (const auto& [kind, size] : pieces) {
    segment.pieces.push_back({kind, segment.end(), size});
    segment.size += size;
  }
  return segment;
}

TEST(AddressMapTest, EachLetterIsAPartOfTheSegment) {
  const SegmentMap segment = Segment(0x1000, {{Piece::kLive, 20},
                                              {Piece::kFree, 15},
                                              {Piece::kLive, 5},
                                              {Piece::kAwaiting, 20},
                                              {Piece::kReleasable, 40}});
  EXPECT_EQ(PictureOf(segment, 10), "##.+~~----");
}

TEST(AddressMapTest, SegmentSmallerThanThePictureHasALetterForEachByte) {
  EXPECT_EQ(PictureOf(Segment(0, {{Piece::kLive, 2}, {Piece::kFree, 1}}), 50), "##.");
}

TEST(AddressMapTest, HugeSegmentDoesNotOverflow) {
  const SegmentMap segment =
      Segment(0, {{Piece::kLive, uint64_t{1} << 60}, {Piece::kFree, uint64_t{1} << 60}});
  EXPECT_EQ(PictureOf(segment, 4), "##..");
}

TEST(AddressMapTest, NoMapWithoutFreeMemory) {
  EXPECT_EQ(AddressMap({Segment(0, {{Piece::kLive, kMiB}})}, 8, 100), "");
}

TEST(AddressMapTest, ManySegmentsAreSummedUpInTheLastLine) {
  std::vector<SegmentMap> segments;
  for (uint64_t i = 0; i < 20; ++i) {
    segments.push_back(
        Segment(i * 1024 * kMiB, {{Piece::kLive, 10 * kMiB}, {Piece::kFree, (i + 1) * kMiB}}));
    segments.back().stream = i;
  }
  const std::string text = AddressMap(segments, 6, 100);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_THAT(text, HasSubstr("stream 0x13\n"));      // the one with most free memory
  EXPECT_THAT(text, Not(HasSubstr("stream 0x1\n")));  // one of those with least free memory
  EXPECT_THAT(text, HasSubstr("16 other segments: 296 MiB, of which 136 MiB free"));
}

}  // namespace
}  // namespace gmt::answers
