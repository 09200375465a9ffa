#include "symbols/symbolize_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"
#include "symbols/testing/sample_library.h"

namespace gmt::symbols {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class SymbolizeRecordingTest : public ::testing::Test {
 protected:
  // Creates a recording with three frames: in the sample library, in a missing module, and a Python
  // frame.
  void SetUp() override {
    const ModuleKey key = library_.key();
    format::ModuleInfo module;
    module.path = key.path;
    module.build_id = key.build_id;
    const uint32_t sample = builder_.AddModule(module);
    module.path = "/gone/libgone.so";
    const uint32_t gone = builder_.AddModule(module);

    native_ = AddNative(sample, library_.Probe("sample_inline_probe"));
    lost_ = AddNative(gone, 0x1234);
    format::FrameInfo python;
    python.function = builder_.InternString("forward");
    python.language = format::Language::kPython;
    builder_.InternFrame(python);
    ASSERT_TRUE(definitions_.Add(builder_.TakeNew()).ok());
  }
  uint32_t AddNative(uint32_t module, uint64_t address) {
    format::FrameInfo frame;
    frame.module = module;
    frame.address = address;
    frame.flags = format::kFrameIsReturnAddress;
    return builder_.InternFrame(frame);
  }
  std::vector<std::string> Functions(uint32_t frame) const {
    std::vector<std::string> names;
    for (const format::Symbol& s : definitions_.symbols(frame)) {
      names.emplace_back(definitions_.string(s.function));
    }
    return names;
  }

  const SampleLibrary library_{"full"};
  format::DefinitionsBuilder builder_;
  format::Definitions definitions_;
  Symbolizer symbolizer_{SymbolizerOptions{}};
  uint32_t native_ = 0, lost_ = 0;
};

TEST_F(SymbolizeRecordingTest, OnlyNativeFramesWithoutANameAreRequested) {
  const auto requests = UnnamedFrames(definitions_);
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].frame, native_);
  EXPECT_EQ(requests[0].kind, AddressKind::kReturn);
  EXPECT_EQ(requests[1].frame, lost_);
}

TEST_F(SymbolizeRecordingTest, InlinedFunctionsGiveOneRowEachAndLossesAreCounted) {
  const auto result = Symbolize(UnnamedFrames(definitions_), symbolizer_,
                                [&](std::string_view text) { return builder_.InternString(text); });
  EXPECT_EQ(result.named, 1u);
  EXPECT_EQ(result.unnamed, 1u);
  EXPECT_EQ(result.symbols->count(), 3u);
  EXPECT_THAT(result.symbols->frame(), ElementsAre(native_, native_, native_));
  EXPECT_THAT(result.symbols->line(), ElementsAre(15, 20, 26));
}

TEST_F(SymbolizeRecordingTest, SymbolizeInPlaceNamesFramesOnce) {
  EXPECT_EQ(SymbolizeInPlace(definitions_, symbolizer_).value(), 1u);
  EXPECT_THAT(Functions(native_),
              ElementsAre("sample::Innermost()", "sample::Middle()",
                          "sample::Holder<char const*, 7ul>::Probe(char const* const&)"));
  EXPECT_THAT(Functions(lost_), SizeIs(0));
  EXPECT_EQ(SymbolizeInPlace(definitions_, symbolizer_).value(), 0u);
}

TEST_F(SymbolizeRecordingTest, FramesOfAnEarlierFileSegmentAreNamedToo) {
  definitions_.BeginSegment();
  EXPECT_EQ(SymbolizeInPlace(definitions_, symbolizer_).value(), 1u);
  ASSERT_THAT(Functions(native_), SizeIs(3));
  EXPECT_EQ(Functions(native_)[0], "sample::Innermost()");
}

}  // namespace
}  // namespace gmt::symbols
