#include "format/printable.h"

#include <gtest/gtest.h>

#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

TEST(PrintableTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("Net.forward (model.py:88) \\ 100 %"), "Net.forward (model.py:88) \\ 100 %");
  EXPECT_EQ(Printable("größe 変数 🙂"), "größe 変数 🙂");
}

TEST(PrintableTest, ControlCharactersBecomeEscapes) {
  EXPECT_EQ(Printable("a\x1b]0;title\x07z"), "a\\x1b]0;title\\x07z");
  EXPECT_EQ(Printable("one\ntwo\r\n\tthree"), "one\\ntwo\\r\\n\\tthree");
  EXPECT_EQ(Printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(Printable("\u009b31m"), "\\x9b31m") << "C1 as UTF-8";
}

TEST(PrintableTest, DirectionAndLineControlsBecomeEscapes) {
  EXPECT_EQ(Printable("\u202Eevil\u202C"), "\\u202eevil\\u202c");
  EXPECT_EQ(Printable("\u2066x\u2069\u200f\u061c"), "\\u2066x\\u2069\\u200f\\u061c");
  EXPECT_EQ(Printable("a\u2028b\u2029"), "a\\u2028b\\u2029");
}

TEST(PrintableTest, InvalidUtf8IsEscapedByteByByte) {
  EXPECT_EQ(Printable("\x9b\x80"), "\\x9b\\x80") << "C1 as single bytes";
  EXPECT_EQ(Printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

TEST(PrintableTest, MessagesAreMadePrintableInDepth) {
  gmt::Facts facts;
  facts.add_argv("python\n");
  facts.set_executable("/bin/\x1bx");
  facts.add_devices()->set_name("GPU\x07");
  MakePrintable(&facts);
  EXPECT_EQ(facts.argv(0), "python\\n");
  EXPECT_EQ(facts.executable(), "/bin/\\x1bx");
  EXPECT_EQ(facts.devices(0).name(), "GPU\\x07");
}

}  // namespace
}  // namespace gmt::format
