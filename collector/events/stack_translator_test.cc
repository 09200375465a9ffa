#include "collector/events/stack_translator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

class StackTranslatorTest : public ::testing::Test {
 protected:
  // Returns the definitions that a reader sees. The stacks get the ids `ids_`, in order.
  format::Definitions Translate(const FakeTarget& target, const std::vector<uint32_t>& stacks) {
    format::DefinitionsBuilder builder;
    StackTranslator translator(target.map(), &builder);
    for (const uint32_t stack : stacks) ids_.push_back(translator.Translate(stack));
    format::Definitions definitions;
    EXPECT_TRUE(definitions.Add(builder.TakeNew()).ok());
    return definitions;
  }

  std::vector<uint32_t> ids_;
};

TEST_F(StackTranslatorTest, StackBecomesFramesInModules) {
  FakeTarget target;
  target.Map("/lib/libmodel.so", 0x10000, 0x20000);
  const uint32_t stack = target.Stack({0x10234, 0x99999});
  const format::Definitions definitions = Translate(target, {stack});
  const std::vector<uint32_t> frames = definitions.StackFrames(ids_[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(definitions.module(definitions.frame(frames[0]).module).path, "/lib/libmodel.so");
  EXPECT_EQ(definitions.frame(frames[0]).address, 0x234u);
  EXPECT_EQ(definitions.frame(frames[1]).module, 0u);
  EXPECT_EQ(definitions.frame(frames[1]).address, 0x99999u);
}

TEST_F(StackTranslatorTest, FramesOfThePreloadedLibraryAreLeftOut) {
  FakeTarget target;
  target.Map("/lib/libtorch_cpu.so", 0x10000, 0x20000);
  target.Map("/gmt/libgpumemtrace.so", 0x30000, 0x40000);
  const uint32_t stack = target.Stack({0x10234, 0x30500, 0x30600, 0x10567});
  format::DefinitionsBuilder builder;
  StackTranslator translator(target.map(), &builder, "/gmt/libgpumemtrace.so");
  const uint32_t id = translator.Translate(stack);
  format::Definitions definitions;
  ASSERT_TRUE(definitions.Add(builder.TakeNew()).ok());
  const std::vector<uint32_t> frames = definitions.StackFrames(id);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(definitions.frame(frames[1]).address, 0x567u);
}

TEST_F(StackTranslatorTest, CallerIsTheLibraryOfTheInnermostFrame) {
  FakeTarget target;
  target.Map("/torch/libc10_cuda.so", 0x10000, 0x20000);
  format::DefinitionsBuilder builder;
  StackTranslator translator(target.map(), &builder);
  EXPECT_EQ(translator.CallerOf(target.Stack({0x10234, 0x99999})), "/torch/libc10_cuda.so");
  EXPECT_EQ(translator.CallerOf(target.Stack({0x99999, 0x10234})), "");
  EXPECT_EQ(translator.CallerOf(0), "");
  EXPECT_EQ(translator.FindLibrary("libc10_cuda"), "/torch/libc10_cuda.so");
  EXPECT_EQ(translator.FindLibrary("libc10."), "");
}

TEST_F(StackTranslatorTest, InterpreterFrameBecomesFunctionFileAndLine) {
  FakeTarget target;
  target.Map("/lib/libpython.so", 0x10000, 0x20000);
  // A location table of CPython 3.11: three code units on the first line, then one on the next.
  const session::CodeObject code = {.format = session::LineTable::kPython311,
                                    .first_line = 88,
                                    .function = target.Text("Net.forward"),
                                    .file = target.Text("/src/model.py"),
                                    .line_table = "\xd2\x00\x01\x01\xe8\x02",
                                    .line_table_bytes = 6};
  const uint32_t id = target.Code(code);
  const uint32_t stack = target.Stack(
      {0x10234, session::InterpreterFrame(0x7f00, 1), session::InterpreterFrame(0x7f00, 3),
       session::InterpreterFrame(0x8f00, 3), 0x10400 | session::kExactFrame},
      session::kStackPython | session::kStackUnmerged, {id, id, 0});
  const format::Definitions definitions = Translate(target, {stack});
  const std::vector<uint32_t> frames = definitions.StackFrames(ids_[0]);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(definitions.WhatStackLacks(ids_[0]), format::kStackUnmerged);
  const auto python = [&](int n) { return definitions.frame(frames[n]); };
  EXPECT_EQ(python(1).language, format::Language::kPython);
  EXPECT_EQ(definitions.string(python(1).function), "Net.forward");
  EXPECT_EQ(definitions.string(python(1).file), "/src/model.py");
  EXPECT_EQ(python(1).line, 88u);
  EXPECT_EQ(python(2).line, 89u);
  EXPECT_EQ(python(3).function, 0u) << "there was no room for its code object";
  EXPECT_EQ(python(3).language, format::Language::kPython);
  EXPECT_EQ(python(4).address, 0x400u);
  EXPECT_EQ(python(4).flags & format::kFrameIsReturnAddress, 0u);
  EXPECT_NE(python(0).flags & format::kFrameIsReturnAddress, 0u);
}

TEST_F(StackTranslatorTest, LineAfterTheEndOfACutTableIsUnknown) {
  session::SessionSizes sizes = FakeTarget::SmallSizes();
  sizes.arena *= 8;
  FakeTarget target(sizes);
  // A co_lnotab with one pair more than there is room for; each code unit is on the next line.
  std::string table;
  while (table.size() <= session::kMaxLineTable) table += "\x02\x01";
  const uint32_t id = target.Code({.format = session::LineTable::kPython39,
                                   .first_line = 100,
                                   .function = target.Text("generated"),
                                   .line_table = table.data(),
                                   .line_table_bytes = table.size()});
  ASSERT_NE(id, 0u);
  constexpr uint32_t kLastKnown = session::kMaxLineTable / 2 - 1;
  const uint32_t stack = target.Stack({session::InterpreterFrame(0x7f00, kLastKnown),
                                       session::InterpreterFrame(0x7f00, kLastKnown + 1)},
                                      session::kStackPython, {id, id});
  const format::Definitions definitions = Translate(target, {stack});
  const std::vector<uint32_t> frames = definitions.StackFrames(ids_[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(definitions.frame(frames[0]).line, 100 + kLastKnown);
  EXPECT_EQ(definitions.frame(frames[1]).line, 0u);
}

TEST_F(StackTranslatorTest, AddressInAnUnloadedModuleHasNoModule) {
  FakeTarget target;
  target.Map("/lib/libplugin.so", 0x10000, 0x20000);
  const uint32_t before = target.Stack({0x10234});
  target.Map("/lib/other.so", 0x1000, 0x2000);
  target.Map("", 0x10000, 0x20000);
  const uint32_t after = target.Stack({0x10234});
  ASSERT_NE(before, after);
  const format::Definitions definitions = Translate(target, {before, after});
  const auto module = [&](int n) {
    return definitions.frame(definitions.StackFrames(ids_[n])[0]).module;
  };
  EXPECT_EQ(definitions.module(module(0)).path, "/lib/libplugin.so");
  EXPECT_EQ(module(1), 0u);
}

}  // namespace
}  // namespace gmt::collector
