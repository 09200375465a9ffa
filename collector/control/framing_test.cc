#include "collector/control/framing.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/seeds/seeds.h"

namespace gmt::control {
namespace {

TEST(FramingTest, MessageFedByteByByteIsCompleteAtItsLastByte) {
  const std::string frame = Framed("hello");
  FrameReader reader(100);
  std::string message;
  for (size_t i = 0; i < frame.size(); ++i) {
    EXPECT_FALSE(reader.Next(&message)) << i;
    reader.Feed(frame.substr(i, 1));
  }
  ASSERT_TRUE(reader.Next(&message));
  EXPECT_EQ(message, "hello");
  EXPECT_FALSE(reader.Next(&message));
}

TEST(FramingTest, EmptyMessageIsAMessage) {
  FrameReader reader(100);
  std::string message = "before";
  reader.Feed(Framed(""));
  ASSERT_TRUE(reader.Next(&message));
  EXPECT_EQ(message, "");
}

TEST(FramingTest, LengthAboveTheLimitBreaksWithoutBuffering) {
  FrameReader reader(5);
  std::string message;
  reader.Feed(Framed("12345"));
  EXPECT_TRUE(reader.Next(&message));
  reader.Feed(Framed("123456"));
  EXPECT_FALSE(reader.Next(&message));
  EXPECT_TRUE(reader.broken());
  reader.Feed(std::string(1000, 'x'));
  EXPECT_EQ(reader.waiting_bytes(), 0u);
}

TEST(FramingTest, AnyPiecesYieldTheSameMessages) {
  ForEachSeed(SeedsUpTo(10), [](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::string> sent, got;
    std::string bytes;
    for (int i = 0; i < 200; ++i) {
      sent.emplace_back(random() % 300, static_cast<char>(random()));
      bytes += Framed(sent.back());
    }
    FrameReader reader(300);
    std::string message;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 700;
      reader.Feed(std::string_view(bytes).substr(at, size));
      at += size;
      while (reader.Next(&message)) got.push_back(message);
    }
    EXPECT_EQ(got, sent);
    EXPECT_FALSE(reader.broken());
  });
}

}  // namespace
}  // namespace gmt::control
