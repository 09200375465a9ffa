#include "analysis/show/subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmt::analysis {
namespace {

using ::testing::HasSubstr;

Subject Parse(const char* text) {
  const auto subject = ParseSubject(text);
  EXPECT_TRUE(subject.ok()) << subject.status();
  return subject.ok() ? *subject : Subject{};
}

TEST(SubjectTest, NumberOfAStackAndOfItsForwardPass) {
  EXPECT_EQ(Parse("stack/7").number, 7u);
  EXPECT_EQ(Parse("stack/7").forward, 0u);
  EXPECT_EQ(Parse("stack/7+9").forward, 9u);
  EXPECT_EQ(Parse("stack/7+9").id(), "stack/7+9");
}

TEST(SubjectTest, AddressesAreHexadecimal) {
  EXPECT_EQ(Parse("stream/0x7f00").number, 0x7f00u);
  EXPECT_EQ(Parse("block/0x10").number, 16u);
  EXPECT_EQ(Parse("block/16").number, 16u);
  EXPECT_EQ(Parse("0x10").kind, Subject::kBlock);
  EXPECT_EQ(Parse("0x10").id(), "block/0x10");
}

TEST(SubjectTest, NameMayHaveASlash) {
  const Subject file = Parse("file//src/model.py");
  EXPECT_EQ(file.kind, Subject::kFile);
  EXPECT_EQ(file.name, "/src/model.py");
}

TEST(SubjectTest, UnknownValuesHaveAWord) {
  EXPECT_TRUE(Parse("thread/unknown").unknown);
  EXPECT_TRUE(Parse("stream/none").unknown);
  EXPECT_TRUE(Parse("device/host").unknown);
  EXPECT_FALSE(ParseSubject("size/unknown").ok());
}

TEST(SubjectTest, WordWithoutAKindIsAName) {
  EXPECT_EQ(Parse("epoch").kind, Subject::kNamed);
  EXPECT_EQ(Parse("epoch/3").kind, Subject::kNamed);
  EXPECT_EQ(Parse("epoch/3").id(), "epoch/3");
}

TEST(SubjectTest, WrongNumberIsAnsweredWithAnExample) {
  for (const char* text : {"stack/", "stack/x", "stack/7+", "stack/7+0", "stack/-1", "leak/one",
                           "event/0x", "stack/99999999999999999999"}) {
    const auto subject = ParseSubject(text);
    ASSERT_FALSE(subject.ok()) << text;
    EXPECT_THAT(subject.status().message(), HasSubstr("is no id; write ")) << text;
  }
}

}  // namespace
}  // namespace gmt::analysis
