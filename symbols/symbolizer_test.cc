#include "symbols/symbolizer.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "symbols/testing/sample_library.h"

namespace gmt::symbols {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kProbe[] = "sample::Holder<char const*, 7ul>::Probe(char const* const&)";

class SymbolizerTest : public ::testing::Test {
 protected:
  // Returns one line per function: "NAME FILE:LINE", without directories.
  std::vector<std::string> Lines(const ModuleKey& module, uint64_t address) {
    std::vector<std::string> lines;
    for (const ResolvedSymbol& s : symbolizer_.Resolve(module, address, AddressKind::kReturn)) {
      const std::string file = std::filesystem::path(s.file).filename();
      lines.push_back(s.function + (file.empty() ? "" : " " + file + ":" + std::to_string(s.line)));
    }
    return lines;
  }
  std::vector<std::string> InlineProbe(const std::string& variant) {
    const SampleLibrary library(variant);
    return Lines(library.key(), library.Probe("sample_inline_probe"));
  }
  Symbolizer symbolizer_{SymbolizerOptions{}};
};

TEST_F(SymbolizerTest, InlinedFunctionsAreListedInnermostFirstWithCallSites) {
  EXPECT_THAT(InlineProbe("full"),
              ElementsAre("sample::Innermost() sample.cc:15", "sample::Middle() sample.cc:20",
                          std::string(kProbe) + " sample.cc:26"));
}

TEST_F(SymbolizerTest, UnitsWithoutArangesAreFoundByTheirOwnRanges) {
  EXPECT_THAT(InlineProbe("noaranges"),
              ElementsAre("sample::Innermost() sample.cc:15", "sample::Middle() sample.cc:20",
                          std::string(kProbe) + " sample.cc:26"));
}

TEST_F(SymbolizerTest, WithoutDwarfTheEnclosingFunctionIsNamedWithoutALine) {
  EXPECT_THAT(InlineProbe("plain"), ElementsAre(kProbe));
}

TEST_F(SymbolizerTest, StrippedLibraryHasNamesOfExportedFunctions) {
  const SampleLibrary library("stripped");
  EXPECT_THAT(Lines(library.key(), library.Probe("sample_plain_probe")),
              ElementsAre("sample_plain_probe"));
}

TEST_F(SymbolizerTest, DebugFileIsFoundByItsLink) {
  EXPECT_THAT(InlineProbe("linked"),
              ElementsAre("sample::Innermost() sample.cc:15", "sample::Middle() sample.cc:20",
                          std::string(kProbe) + " sample.cc:26"));
}

TEST_F(SymbolizerTest, NameDoesNotExtendBeyondItsSymbol) {
  const SampleLibrary library("full");
  const uint64_t sized = library.Symbol("sample_sized");
  EXPECT_THAT(symbolizer_.Resolve(library.key(), sized, AddressKind::kExact),
              ElementsAre(ResolvedSymbol{"sample_sized", "", 0}));
  EXPECT_THAT(symbolizer_.Resolve(library.key(), sized + 1, AddressKind::kExact), IsEmpty());
  EXPECT_THAT(symbolizer_.Resolve(library.key(), sized + 40, AddressKind::kExact), IsEmpty());
}

TEST_F(SymbolizerTest, UnsizedAssemblerSymbolExtendsToTheNextSymbol) {
  const SampleLibrary library("stripped");
  const uint64_t unsized = library.Symbol("sample_unsized");
  EXPECT_THAT(symbolizer_.Resolve(library.key(), unsized + 8, AddressKind::kExact),
              ElementsAre(ResolvedSymbol{"sample_unsized", "", 0}));
  EXPECT_THAT(symbolizer_.Resolve(library.key(), unsized + 16, AddressKind::kExact),
              ElementsAre(ResolvedSymbol{"sample_sized", "", 0}));
}

TEST_F(SymbolizerTest, ReturnAddressNamesTheCallerAlthoughTheNextFunctionBeginsThere) {
  const SampleLibrary library("stripped");
  const uint64_t next = library.Symbol("sample_sized");
  EXPECT_THAT(symbolizer_.Resolve(library.key(), next, AddressKind::kReturn),
              ElementsAre(ResolvedSymbol{"sample_unsized", "", 0}));
}

TEST_F(SymbolizerTest, RebuiltFileHasNoNames) {
  const SampleLibrary library("full");
  ModuleKey key = library.key();
  key.build_id[0] = static_cast<char>(key.build_id[0] + 1);
  EXPECT_THAT(Lines(key, library.Probe("sample_plain_probe")), IsEmpty());
  EXPECT_EQ(symbolizer_.StateOf(key), ModuleState::kChanged);
}

TEST_F(SymbolizerTest, DeletedMarkIsNotPartOfTheName) {
  const SampleLibrary library("full");
  ModuleKey key = library.key();
  key.path += " (deleted)";
  EXPECT_THAT(Lines(key, library.Probe("sample_plain_probe")),
              ElementsAre("sample_plain_probe sample.cc:38"));
}

TEST_F(SymbolizerTest, MissingUnreadableAndOddFilesAreDistinguished) {
  EXPECT_EQ(symbolizer_.StateOf({"/nowhere/lib.so", "x"}), ModuleState::kMissing);
  EXPECT_EQ(symbolizer_.StateOf({"/etc/passwd", "x"}), ModuleState::kUnreadable);
  EXPECT_EQ(symbolizer_.StateOf({"/dev/zero", "x"}), ModuleState::kUnreadable);
  EXPECT_EQ(symbolizer_.StateOf({"", ""}), ModuleState::kMissing);
  EXPECT_EQ(symbolizer_.StateOf({"[heap]", ""}), ModuleState::kMissing);
}

TEST_F(SymbolizerTest, VdsoIsReadFromMemory) {
  auto vdso = ElfFile::OpenVdso();
  if (!vdso.ok()) GTEST_SKIP() << vdso.status();
  EXPECT_EQ(symbolizer_.StateOf({"[vdso]", (*vdso)->BuildId()}), ModuleState::kUsable);
  EXPECT_EQ(symbolizer_.StateOf({"[vdso]", "another kernel"}), ModuleState::kChanged);
}

TEST_F(SymbolizerTest, RootPrecedesEveryPath) {
  SymbolizerOptions options;
  options.root = "/proc/self/root";
  Symbolizer symbolizer(options);
  const SampleLibrary library("full");
  EXPECT_EQ(symbolizer.StateOf(library.key()), ModuleState::kUsable);
}

TEST_F(SymbolizerTest, OnlyTheMostRecentlyUsedModulesStayOpen) {
  SymbolizerOptions options;
  options.max_open_modules = 2;
  Symbolizer symbolizer(options);
  const SampleLibrary full("full"), plain("plain"), stripped("stripped");
  for (int round = 0; round < 3; ++round) {
    for (const SampleLibrary* library : {&full, &plain, &stripped}) {
      EXPECT_FALSE(
          symbolizer
              .Resolve(library->key(), library->Probe("sample_plain_probe"), AddressKind::kReturn)
              .empty());
      EXPECT_LE(symbolizer.open_modules(), 2u);
    }
  }
}

TEST_F(SymbolizerTest, ResultsAreTheSameIfNothingMayStayOpen) {
  SymbolizerOptions options;
  options.max_bytes = 1;
  Symbolizer symbolizer(options);
  const SampleLibrary full("full"), plain("plain");
  for (int round = 0; round < 3; ++round) {
    for (const SampleLibrary* library : {&full, &plain}) {
      const uint64_t probe = library->Probe("sample_inline_probe");
      EXPECT_EQ(symbolizer.Resolve(library->key(), probe, AddressKind::kReturn),
                symbolizer_.Resolve(library->key(), probe, AddressKind::kReturn));
      EXPECT_EQ(symbolizer.open_modules(), 1u);
    }
  }
}

TEST_F(SymbolizerTest, ExecutableOfThisTestResolvesItself) {
  auto self = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(self.ok());
  if ((*self)->BuildId().empty()) GTEST_SKIP() << "linked without a build-id";
  Dl_info info;
  auto* function = reinterpret_cast<void*>(&Describe);
  ASSERT_NE(dladdr(function, &info), 0);
  // A position-independent executable is linked at 0, any other at its own address.
  const auto* header = static_cast<const Elf64_Ehdr*>(info.dli_fbase);
  const uint64_t bias = header->e_type == ET_DYN ? reinterpret_cast<uint64_t>(info.dli_fbase) : 0;
  const auto resolved =
      symbolizer_.Resolve({std::filesystem::read_symlink("/proc/self/exe"), (*self)->BuildId()},
                          reinterpret_cast<uint64_t>(function) - bias, AddressKind::kExact);
  ASSERT_FALSE(resolved.empty());
  EXPECT_EQ(resolved.back().function, "gmt::symbols::Describe(gmt::symbols::ModuleState)");
}

}  // namespace
}  // namespace gmt::symbols
