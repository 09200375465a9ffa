#include "format/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DefinitionsTest : public testing::Test {
 protected:
  uint32_t Frame(std::string_view function) {
    FrameInfo frame;
    frame.function = builder_.InternString(function);
    return builder_.InternFrame(frame);
  }
  // Passes the new definitions of the builder to the reader.
  void Pass() { ASSERT_TRUE(definitions_.Add(builder_.TakeNew()).ok()); }

  DefinitionsBuilder builder_;
  Definitions definitions_;
};

TEST_F(DefinitionsTest, EqualStringsHaveOneId) {
  EXPECT_EQ(builder_.InternString("a"), builder_.InternString("a"));
  EXPECT_NE(builder_.InternString("a"), builder_.InternString("b"));
}

TEST_F(DefinitionsTest, EmptyStringIsNone) {
  EXPECT_EQ(builder_.InternString(""), 0u);
  EXPECT_FALSE(builder_.has_new());
}

TEST_F(DefinitionsTest, IdsContinueAcrossChunks) {
  const uint32_t a = builder_.InternString("a");
  Pass();
  const uint32_t b = builder_.InternString("b");
  Pass();
  EXPECT_EQ(definitions_.string(a), "a");
  EXPECT_EQ(definitions_.string(b), "b");
}

TEST_F(DefinitionsTest, UnknownIdsLookUpAsNone) {
  EXPECT_EQ(definitions_.string(99), "");
  EXPECT_EQ(definitions_.frame(99), FrameInfo());
  EXPECT_EQ(definitions_.stack(4'000'000'000), StackNode());
  EXPECT_THAT(definitions_.symbols(99), IsEmpty());
  EXPECT_THAT(definitions_.StackFrames(99), IsEmpty());
}

TEST_F(DefinitionsTest, StacksShareTheirOuterFrames) {
  const uint32_t main = Frame("main"), a = Frame("a"), b = Frame("b");
  const uint32_t first = builder_.InternStack({a, main}, 0);
  const uint32_t second = builder_.InternStack({b, main}, 0);
  Pass();
  EXPECT_EQ(definitions_.stack_count(), 3u);
  EXPECT_EQ(definitions_.stack(first).parent, definitions_.stack(second).parent);
  EXPECT_THAT(definitions_.StackFrames(second), ElementsAre(b, main));
}

TEST_F(DefinitionsTest, TruncationBelongsToTheOutermostFrame) {
  const uint32_t main = Frame("main"), a = Frame("a");
  const uint32_t whole = builder_.InternStack({a, main}, 0);
  const uint32_t cut = builder_.InternStack({a, main}, kStackTruncated | kStackUnmerged);
  Pass();
  EXPECT_EQ(definitions_.WhatStackLacks(whole), 0u);
  EXPECT_EQ(definitions_.WhatStackLacks(cut), kStackTruncated | kStackUnmerged);
}

TEST_F(DefinitionsTest, StackWithoutFramesKeepsTheIdOfItsLog) {
  EXPECT_EQ(builder_.InternStack({}, 0), 0u);
  const uint32_t stack = builder_.InternStack({}, 0, 7);
  Pass();
  EXPECT_EQ(definitions_.stack(stack).log_id, 7u);
}

TEST_F(DefinitionsTest, CycleOfParentsTerminates) {
  gmt::Definitions chunk;
  chunk.mutable_stacks()->set_count(2);
  for (const uint32_t parent : {2, 1}) {
    chunk.mutable_stacks()->add_frame(1);
    chunk.mutable_stacks()->add_parent(parent);
  }
  ASSERT_TRUE(definitions_.Add(chunk).ok());
  EXPECT_EQ(definitions_.StackFrames(2).size(), 2u);
}

TEST_F(DefinitionsTest, LostChunkLeavesAHoleAndLaterIdsAreCorrect) {
  builder_.InternString("lost");
  builder_.TakeNew();
  const uint32_t kept = builder_.InternString("kept");
  Pass();
  EXPECT_EQ(definitions_.string(kept), "kept");
  EXPECT_EQ(definitions_.string(kept - 1), "");
}

TEST_F(DefinitionsTest, ChunkThatSkipsMillionsOfIdsIsRejected) {
  gmt::Definitions chunk;
  chunk.add_strings("x");
  chunk.set_first_string(4'000'000'000);
  EXPECT_FALSE(definitions_.Add(chunk).ok());
  EXPECT_EQ(definitions_.string_count(), 0u);
}

TEST_F(DefinitionsTest, ChunkThatClaimsBillionsOfFramesIsRejected) {
  gmt::Definitions chunk;
  chunk.mutable_frames()->set_count(4'000'000'000);
  EXPECT_FALSE(definitions_.Add(chunk).ok());
}

TEST_F(DefinitionsTest, IdsOfALaterSegmentAreShifted) {
  builder_.InternString("first");
  Pass();
  definitions_.BeginSegment();
  DefinitionsBuilder other;
  FrameInfo frame;
  frame.function = other.InternString("second");
  const uint32_t id = other.InternFrame(frame);
  ASSERT_TRUE(definitions_.Add(other.TakeNew()).ok());
  const FrameInfo& read = definitions_.frame(id + definitions_.base().frame);
  EXPECT_EQ(definitions_.string(read.function), "second");
}

TEST_F(DefinitionsTest, LaterSymbolsReplaceEarlierOnes) {
  const uint32_t frame = Frame("x"), old = builder_.InternString("old"),
                 better = builder_.InternString("better");
  Pass();
  for (const uint32_t name : {old, better}) {
    Symbols symbols;
    symbols.set_count(1);
    symbols.add_frame(frame);
    symbols.add_function(name);
    ASSERT_TRUE(definitions_.Add(symbols).ok());
  }
  ASSERT_EQ(definitions_.symbols(frame).size(), 1u);
  EXPECT_EQ(definitions_.string(definitions_.symbols(frame)[0].function), "better");
}

TEST_F(DefinitionsTest, EqualModulesAreInternedOnce) {
  const ModuleInfo module{"/lib/a.so", "id", 0, 0, 0, 0};
  EXPECT_EQ(builder_.InternModule(module), builder_.InternModule(module));
  EXPECT_NE(builder_.AddModule(module), builder_.InternModule(module));
}

}  // namespace
}  // namespace gmt::format
