// Tables that the compiler of this test does not write, and damaged ones.

#include "preload/stacks/unwind/call_frame.h"

#include <random>

#include "gtest/gtest.h"
#include "preload/stacks/unwind/rule.h"
#include "preload/stacks/unwind/testing/table_builder.h"
#include "preload/stacks/unwind/testing/table_copy.h"
#include "tests/seeds/seeds.h"

namespace gmt::preload {
namespace {

using testing::Fixed;
using testing::ReadAnywhere;
using testing::TableBuilder;

// Returns the rule at `offset` of a function with that program.
Rule RuleOf(const std::string& program, uint64_t offset = 0, TableBuilder tables = {}) {
  tables.Add(program);
  tables.Build();
  CallFrame frame;
  if (tables.Read(tables.Function(0) + offset, &frame) != FoundFrame::kFound) return Rule();
  return ToRule(frame, tables.Function(0) + offset);
}

Rule PlainSp(int64_t offset) { return Rule::At(Rule::kPlain, false, offset, 0); }

TEST(CallFrameTest, EachInstructionHasItsRow) {
  // push rbp; mov rbp, rsp
  const std::string program = {'\x41', 0x0e, 16, '\x86', 2, '\x43', 0x0d, 6};
  EXPECT_EQ(RuleOf(program, 0), PlainSp(8));
  EXPECT_EQ(RuleOf(program, 1), PlainSp(16).WithBpAtCfa(-16));
  EXPECT_EQ(RuleOf(program, 3), PlainSp(16).WithBpAtCfa(-16));
  EXPECT_EQ(RuleOf(program, 4), Rule::At(Rule::kPlain, true, 16, 0).WithBpAtCfa(-16));
}

TEST(CallFrameTest, FunctionIsFoundAmongMany) {
  TableBuilder tables;
  for (char i = 0; i < 100; ++i) tables.Add(std::string({0x0e, i}));
  for (const bool with_index : {true, false}) {
    tables.with_index = with_index;
    tables.Build();
    CallFrame frame;
    for (size_t i = 0; i < 100; ++i) {
      for (uint64_t offset : {uint64_t{0}, TableBuilder::kFunctionSize - 1}) {
        ASSERT_EQ(tables.Read(tables.Function(i) + offset, &frame), FoundFrame::kFound) << i;
        EXPECT_EQ(frame.cfa_offset, static_cast<int64_t>(i));
      }
    }
    EXPECT_EQ(tables.Read(tables.Function(100), &frame), FoundFrame::kNoTable);
    EXPECT_EQ(tables.Read(tables.Function(0) - 1, &frame), FoundFrame::kNoTable);
  }
}

TEST(CallFrameTest, AllEncodingsAndAugmentationsInUse) {
  TableBuilder tables;
  for (const uint8_t encoding : {0x1b, 0x1c, 0x00, 0x04, 0x0c}) {
    tables.encoding = encoding;
    EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24)) << int{encoding};
  }
  tables = {};
  tables.version = 3;
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24));
  tables.is_64_bit = true;
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24));
  tables = {};
  tables.augmentation = "zPLRB";
  tables.personality = '\x9b' + Fixed(0x1234, 4);
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24));
  tables.personality = '\x00' + Fixed(0x1234, 8);
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24));
  tables.augmentation = "";
  tables.encoding = 0;
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables), PlainSp(24));
  tables.augmentation = "zRX";
  EXPECT_EQ(RuleOf({0x0e, 24}, 0, tables).bits(), 0u);
}

TEST(CallFrameTest, RememberedRowsAreRestored) {
  // remember; 1 on: CFA = rsp + 64; 1 on: restore
  const std::string program = {0x0e, 32, 0x0a, '\x41', 0x0e, 64, '\x41', 0x0b};
  EXPECT_EQ(RuleOf(program, 0), PlainSp(32));
  EXPECT_EQ(RuleOf(program, 1), PlainSp(64));
  EXPECT_EQ(RuleOf(program, 2), PlainSp(32));
  EXPECT_EQ(RuleOf({0x0b}).bits(), 0u);
  EXPECT_EQ(RuleOf(std::string(5, 0x0a)).bits(), 0u);
}

TEST(CallFrameTest, FormsOfTheCfa) {
  EXPECT_EQ(RuleOf({0x0c, 6, 16}), Rule::At(Rule::kPlain, true, 16, 0));
  EXPECT_EQ(RuleOf({0x12, 7, 0x7c}), PlainSp(32));       // def_cfa_sf: -4 * -8
  EXPECT_EQ(RuleOf({0x13, 0x7c}), PlainSp(32));          // def_cfa_offset_sf
  EXPECT_EQ(RuleOf({0x0e, 24, 0x2e, 16}), PlainSp(24));  // GNU_args_size
  // breg6 -8; deref: after realignment of the stack
  EXPECT_EQ(RuleOf({0x0f, 3, 0x76, 0x78, 0x06}), Rule::At(Rule::kLoaded, true, -8, 0));
  // breg7 16; deref; plus_uconst 8: hand-written assembly
  EXPECT_EQ(RuleOf({0x0f, 5, 0x77, 16, 0x06, 0x23, 8}), Rule::At(Rule::kLoaded, false, 16, 8));
  EXPECT_EQ(RuleOf({0x0c, 10, 0}).shape(), Rule::kSlow);  // r10
  EXPECT_EQ(RuleOf({0x0c, 17, 0}).bits(), 0u);
  EXPECT_EQ(RuleOf({0x0c, 7, 12}).shape(), Rule::kSlow);  // not aligned
}

TEST(CallFrameTest, ProcedureLinkageTableIsResolvedForItsAddress) {
  // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
  const std::string program = {0x0f, 11,   0x77, 8,    '\x80', 0,   0x3f,
                               0x1a, 0x3b, 0x2a, 0x33, 0x24,   0x22};
  TableBuilder tables;
  tables.Add(program);
  tables.Build();
  for (uint64_t offset = 0; offset < 32; ++offset) {
    const uint64_t pc = tables.Function(0) + offset;
    CallFrame frame;
    ASSERT_EQ(tables.Read(pc, &frame), FoundFrame::kFound);
    EXPECT_EQ(ToRule(frame, pc), PlainSp((pc & 15) >= 11 ? 16 : 8)) << offset;
  }
}

TEST(CallFrameTest, LocationsOfTheFramePointer) {
  EXPECT_EQ(RuleOf({'\x86', 3}), PlainSp(8).WithBpAtCfa(-24));
  EXPECT_EQ(RuleOf({0x05, 6, 3}), PlainSp(8).WithBpAtCfa(-24));
  EXPECT_EQ(RuleOf({0x11, 6, 3}), PlainSp(8).WithBpAtCfa(-24));
  EXPECT_EQ(RuleOf({0x10, 6, 2, 0x76, 0}), PlainSp(8).WithBpAtBp(0));
  EXPECT_EQ(RuleOf({0x10, 6, 2, 0x76, 0x70}), PlainSp(8).WithBpAtBp(-16));
  EXPECT_EQ(RuleOf({'\x86', 3, '\xc6'}), PlainSp(8));   // restored to the CIE's rule
  EXPECT_EQ(RuleOf({'\x86', 3, 0x08, 6}), PlainSp(8));  // same_value
  EXPECT_EQ(RuleOf({0x16, 6, 2, 0x77, 0}).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf({0x09, 6, 3}).shape(), Rule::kSlow);  // in rbx
  EXPECT_EQ(RuleOf({0x2f, 6, 3}).shape(), Rule::kSlow);  // above the CFA
}

TEST(CallFrameTest, LocationsOfTheReturnAddress) {
  EXPECT_EQ(RuleOf({0x07, 16}).shape(), Rule::kOutermost);
  EXPECT_EQ(RuleOf({'\x90', 2}).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf({0x09, 16, 2}).shape(), Rule::kSlow);
}

TEST(CallFrameTest, SignalFrameOfTheKernelIsRecognized) {
  TableBuilder tables;
  tables.augmentation = "zRS";
  const std::string cfa = {0x0f, 4, 0x77, '\xa0', 1, 0x06};
  const std::string bp = {0x10, 6, 3, 0x77, '\xf8', 0}, pc = {0x10, 16, 3, 0x77, '\xa8', 1};
  EXPECT_EQ(RuleOf(cfa + bp + pc, 0, tables).shape(), Rule::kSignal);
  EXPECT_EQ(RuleOf(cfa + bp, 0, tables).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf({0x0e, 16}, 0, tables).shape(), Rule::kSlow);
}

TEST(CallFrameTest, LongProgram) {
  std::string program;
  for (int i = 1; i < 100; ++i) program += {0x02, 2, 0x0e, static_cast<char>(i)};
  program += {0x03, 4, 0, 0x0e, 101, 0x04, 4, 0, 0, 0, 0x0e, 102};
  EXPECT_EQ(RuleOf(program, 80), PlainSp(40));
  EXPECT_EQ(RuleOf(program, 202).shape(), Rule::kSlow);  // 101 is not aligned
}

TEST(CallFrameTest, ExpressionsTerminate) {
  // skip -3: an endless loop
  EXPECT_EQ(RuleOf({0x0f, 3, 0x2f, '\xfd', '\xff'}).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf({0x0f, 1, 0x06}).shape(), Rule::kSlow);  // on an empty stack
  EXPECT_EQ(RuleOf({0x0f, 0}).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf(std::string{0x0f, 20} + std::string(20, 0x31)).shape(), Rule::kSlow);
  EXPECT_EQ(RuleOf({0x0f, 4, 0x31, 0x30, 0x1b, 0x06}).shape(), Rule::kSlow);  // 1 / 0
  EXPECT_EQ(RuleOf({0x0f, '\x7f'}).bits(), 0u);  // longer than its record
}

// Whatever the tables contain, reading them terminates and stays inside them. The address sanitizer
// detects reads outside.
TEST(CallFrameTest, DamagedTablesAreSurvived) {
  ForEachSeed(SeedsUpTo(20'000), [](uint32_t seed) {
    std::mt19937_64 random(seed);
    TableBuilder tables;
    tables.with_index = seed % 4 != 0;
    tables.is_64_bit = seed % 3 == 0;
    for (int i = 0; i < 4; ++i) {
      std::string program;
      for (uint64_t n = random() % 24; n > 0; --n) program += static_cast<char>(random());
      tables.Add(program);
    }
    tables.Build();
    for (uint64_t n = random() % 6; n > 0; --n) {
      tables.bytes()[random() % tables.bytes().size()] = static_cast<uint8_t>(random());
    }
    ReadAnywhere(tables.bytes().data(), tables.bytes().size(), random() % 1024);
  });
}

}  // namespace
}  // namespace gmt::preload
