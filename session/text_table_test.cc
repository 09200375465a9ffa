#include "session/text_table.h"

#include <gtest/gtest.h>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

class TextTableTest : public ::testing::Test {
 protected:
  ScratchSession session_;
  TextTable texts_ = session_.map().texts();
};

TEST_F(TextTableTest, TextIsReadBackUnchanged) {
  EXPECT_EQ(ReadText(session_.map(), texts_.Intern("optimizer.step")), "optimizer.step");
  EXPECT_EQ(ReadText(session_.map(), texts_.Intern("")), "");
}

TEST_F(TextTableTest, EqualTextsShareAnIdAndOthersDoNot) {
  EXPECT_EQ(texts_.Intern("a"), texts_.Intern("a"));
  EXPECT_NE(texts_.Intern("a"), texts_.Intern(std::string("a\0", 2)));
}

TEST_F(TextTableTest, LongTextIsTruncated) {
  const std::string text(kMaxTextLength + 100, 'x');
  EXPECT_EQ(ReadText(session_.map(), texts_.Intern(text)), text.substr(0, kMaxTextLength));
}

TEST_F(TextTableTest, InvalidIdsAreNotFound) {
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1024}, ~uint64_t{0}})
    EXPECT_EQ(ReadText(session_.map(), id), "") << id;
}

TEST_F(TextTableTest, LengthBeyondTheArenaIsRejected) {
  const uint64_t last = session_.map().count(kArena) - 1;
  session_.map().section<uint64_t>(kArena)[last] = 9;
  EXPECT_EQ(ReadText(session_.map(), last), "");
}

}  // namespace
}  // namespace gmt::session
