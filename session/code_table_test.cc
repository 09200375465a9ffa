#include "session/code_table.h"

#include <gtest/gtest.h>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

SessionSizes RoomySizes() {
  SessionSizes sizes = SmallSizes();
  sizes.arena = 1 << 16;
  return sizes;
}

class CodeTableTest : public ::testing::Test {
 protected:
  uint32_t Intern(const std::string& function, uint32_t first_line, const std::string& table) {
    return session_.map().codes().Intern({.format = LineTable::kPython311,
                                          .first_line = first_line,
                                          .function = session_.map().texts().Intern(function),
                                          .file = session_.map().texts().Intern("model.py"),
                                          .line_table = table.data(),
                                          .line_table_bytes = table.size()});
  }

  ScratchSession session_{RoomySizes()};
  CodeCopy code_;
};

TEST_F(CodeTableTest, CodeObjectIsReadBackUnchanged) {
  const std::string table("\x80\0\xff\x01table", 9);
  ASSERT_TRUE(ReadCode(session_.map(), Intern("Net.forward", 88, table), &code_));
  EXPECT_EQ(code_.function, "Net.forward");
  EXPECT_EQ(code_.file, "model.py");
  EXPECT_EQ(code_.first_line, 88u);
  EXPECT_EQ(code_.format, LineTable::kPython311);
  EXPECT_EQ(code_.line_table, table);
  EXPECT_FALSE(code_.line_table_cut);
}

TEST_F(CodeTableTest, AnyDifferenceGivesANewId) {
  const uint32_t id = Intern("f", 1, "abcdefgh");
  EXPECT_EQ(Intern("f", 1, "abcdefgh"), id);
  EXPECT_NE(Intern("g", 1, "abcdefgh"), id);
  EXPECT_NE(Intern("f", 2, "abcdefgh"), id);
  EXPECT_NE(Intern("f", 1, "abcdefgx"), id);
  EXPECT_NE(Intern("f", 1, "abcdefg"), id);
  EXPECT_NE(Intern("f", 1, std::string("abcdefgh\0", 9)), id);
}

TEST_F(CodeTableTest, LongLineTableIsTruncatedAndFlagged) {
  ASSERT_TRUE(
      ReadCode(session_.map(), Intern("f", 1, std::string(kMaxLineTable + 1, 'x')), &code_));
  EXPECT_EQ(code_.line_table, std::string(kMaxLineTable, 'x'));
  EXPECT_TRUE(code_.line_table_cut);
}

TEST_F(CodeTableTest, CodeObjectWithoutALineTableIsValid) {
  ASSERT_TRUE(ReadCode(session_.map(), Intern("f", 1, ""), &code_));
  EXPECT_EQ(code_.line_table, "");
}

TEST_F(CodeTableTest, InvalidIdsAreNotFound) {
  const uint64_t words = session_.map().count(kArena);
  for (const uint64_t id : {uint64_t{0}, words - 1, words, uint64_t{~0u}})
    EXPECT_FALSE(ReadCode(session_.map(), static_cast<uint32_t>(id), &code_)) << id;
}

TEST_F(CodeTableTest, FullArenaGivesIdZero) {
  uint32_t id = 1;
  for (uint32_t line = 0; id != 0 && line < 64; ++line)
    id = Intern("f", line, std::string(kMaxLineTable, 'x'));
  EXPECT_EQ(id, 0u);
}

}  // namespace
}  // namespace gmt::session
