#include "symbols/symbol_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "symbols/testing/sample_library.h"
#include "tests/seeds/seeds.h"

namespace gmt::symbols {
namespace {

// Simple reference search: among ranges that contain `address`, the one that starts last, then
// ends first, then has the better name.
const SymbolRange* Innermost(const std::vector<SymbolRange>& ranges, uint64_t address) {
  const SymbolRange* best = nullptr;
  for (const SymbolRange& r : ranges) {
    if (address < r.start || address >= r.end) continue;
    const auto rank = [](const SymbolRange& x) {
      return std::tuple(~x.start, x.end, x.order, x.name);
    };
    if (best == nullptr || rank(r) < rank(*best)) best = &r;
  }
  return best;
}

uint32_t NameAt(const std::vector<SymbolRange>& disjoint, uint64_t address) {
  for (const SymbolRange& r : disjoint) {
    if (address >= r.start && address < r.end) return r.name;
  }
  return 0;
}

TEST(SymbolTable, RandomRangesAgreeWithTheReferenceSearch) {
  ForEachSeed(SeedsUpTo(300), [](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<SymbolRange> ranges;
    for (uint32_t name = 1; name <= 12; ++name) {
      const uint64_t start = random() % 40;
      ranges.push_back({start, start + random() % 15, name, static_cast<uint32_t>(random() % 3)});
    }
    const std::vector<SymbolRange> disjoint = MakeDisjoint(ranges);
    for (size_t i = 1; i < disjoint.size(); ++i) ASSERT_LE(disjoint[i - 1].end, disjoint[i].start);
    for (uint64_t address = 0; address < 60; ++address) {
      const SymbolRange* expected = Innermost(ranges, address);
      ASSERT_EQ(NameAt(disjoint, address), expected == nullptr ? 0 : expected->name) << address;
    }
  });
}

TEST(SymbolTable, ExportedNameWinsOverAliases) {
  const auto disjoint = MakeDisjoint({{0, 8, 1, 2}, {0, 8, 2, 0}, {0, 8, 3, 1}});
  ASSERT_EQ(disjoint.size(), 1u);
  EXPECT_EQ(disjoint[0].name, 2u);
}

TEST(SymbolTable, SymtabIsPreferredToDynsym) {
  auto full = ElfFile::Open(SampleLibrary("full").path());
  auto stripped = ElfFile::Open(SampleLibrary("stripped").path());
  ASSERT_TRUE(full.ok() && stripped.ok());
  const SymbolTable with(**full), without(**stripped);
  EXPECT_TRUE(with.from_symtab());
  EXPECT_FALSE(without.from_symtab());
  EXPECT_GT(with.size(), without.size());
  EXPECT_EQ(without.Find(0), "");
  EXPECT_EQ(without.Find(UINT64_MAX), "");
}

}  // namespace
}  // namespace gmt::symbols
