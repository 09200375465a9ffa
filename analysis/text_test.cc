#include "analysis/text.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/seeds/seeds.h"

namespace gmt {
namespace {

TEST(TextTest, BytesHaveAtMostThreeSignificantDigits) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(512), "512 B");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1024), "1.00 KiB");
  EXPECT_EQ(Bytes(3'672'196'301), "3.42 GiB");
  EXPECT_EQ(Bytes(64'277'709), "61.3 MiB");
  EXPECT_EQ(Bytes(119'808), "117 KiB");
}

TEST(TextTest, BytesThatRoundUpUseTheNextUnit) {
  EXPECT_EQ(Bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(Bytes(1'048'000), "1.00 MiB");
  EXPECT_EQ(Bytes(~0ull), "16.0 EiB");
}

TEST(TextTest, NoSizeNeedsMoreThanFourDigits) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937_64 random(seed);
    for (int n = 0; n < 10'000; ++n) {
      const uint64_t bytes = random() >> (random() % 64);
      const std::string text = Bytes(bytes);
      EXPECT_LE(text.substr(0, text.find(' ')).size(), 4u) << bytes << " is " << text;
    }
  });
}

TEST(TextTest, DifferencesHaveASign) {
  EXPECT_EQ(SignedBytes(1 << 20), "+1.00 MiB");
  EXPECT_EQ(SignedBytes(-512), "-512 B");
  EXPECT_EQ(SignedBytes(0), "0 B");
  EXPECT_EQ(SignedBytes(INT64_MIN), "-8.00 EiB");
}

TEST(TextTest, PercentIsWholeAndNeverHidesNonZero) {
  EXPECT_EQ(Percent(61, 100), "61 %");
  EXPECT_EQ(Percent(0, 100), "0 %");
  EXPECT_EQ(Percent(0.4, 100), "<1 %");
  EXPECT_EQ(Percent(1, 0), "-");
}

TEST(TextTest, LongTextIsCutAfterAWholeCharacter) {
  EXPECT_EQ(Shortened("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(Shortened("abcdefghi", 8), "abcde...");
  EXPECT_EQ(Shortened("ééééééééé", 8), "ééééé...");
  EXPECT_EQ(Shortened("abcdefghi", 0), "a...");
}

TEST(TextTest, NumbersAreNeverCut) {
  const std::string text = "optimizer +34.1 MiB, gradients 1,204";
  EXPECT_EQ(Shortened(text, 16), "optimizer...");  // of "optimizer +34"
  EXPECT_EQ(Shortened(text, 18), "optimizer...");  // of "optimizer +34.1"
  EXPECT_EQ(Shortened(text, 20), "optimizer...");  // of "optimizer +34.1 M"
  EXPECT_EQ(Shortened(text, 22), "optimizer +34.1 MiB...");
  EXPECT_EQ(Shortened(text, 35), "optimizer +34.1 MiB, gradients...");
  EXPECT_EQ(Shortened(text, 36), text);
  EXPECT_EQ(Shortened("61 % of everything", 5),
            "61...");  // a number at the beginning is cut anyway
}

TEST(TextTest, SentencesAreBrokenBetweenWordsAndNotAfterNumbers) {
  EXPECT_EQ(Wrapped("a sentence", 20, "  "), "a sentence");
  EXPECT_EQ(Wrapped("300 MiB more than the others", 16, "  "),
            "300 MiB more\n  than the\n  others");
  EXPECT_EQ(Wrapped("it is more by 300 MiB", 17, ""), "it is more by\n300 MiB");
  EXPECT_EQ(Wrapped("  indented words", 10, "    "), "  indented\n    words");
  EXPECT_EQ(Wrapped("é é é é", 3, ""), "é é\né é");
  EXPECT_EQ(Wrapped("unbreakable", 4, "  "), "unbreakable");
  EXPECT_EQ(Wrapped("", 4, "  "), "");
  EXPECT_EQ(Wrapped("   ", 4, "  "), "   ");
}

TEST(TextTest, DurationsReadNaturally) {
  EXPECT_EQ(Duration(900), "900 ns");
  EXPECT_EQ(Duration(12'400), "12.4 us");
  EXPECT_EQ(Duration(7'660'000'000), "7.66 s");
  EXPECT_EQ(Duration(190'000'000'000), "3 m 10 s");
  EXPECT_EQ(Duration(22'320'000'000'000), "6 h 12 m");
  EXPECT_EQ(Duration(273'600'000'000'000), "3 d 4 h");
  EXPECT_EQ(Duration(-5), "-5 ns");
}

TEST(TextTest, CountsHaveSeparators) {
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(8'391'204), "8,391,204");
  EXPECT_EQ(Count(1'000'001), "1,000,001");
}

TEST(TextTest, OneIsSingular) {
  EXPECT_EQ(Plural(1, "event"), "1 event");
  EXPECT_EQ(Plural(0, "event"), "0 events");
  EXPECT_EQ(Plural(3, "library"), "3 libraries");
}

}  // namespace
}  // namespace gmt
