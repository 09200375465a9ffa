#include "analysis/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/definitions_builder.h"
#include "proto/gmt.pb.h"

namespace gmt::analysis {
namespace {

class FramesTest : public ::testing::Test {
 protected:
  uint32_t Native(uint64_t address) {
    format::ModuleInfo module;
    module.path = "/opt/lib/libmodel.so";
    format::FrameInfo frame;
    frame.module = builder_.AddModule(module);
    frame.address = address;
    return builder_.InternFrame(frame);
  }
  uint32_t Named(const std::string& function, const std::string& file, uint32_t line) {
    format::FrameInfo frame;
    frame.function = builder_.InternString(function);
    frame.file = builder_.InternString(file);
    frame.line = line;
    frame.language = format::Language::kPython;
    return builder_.InternFrame(frame);
  }
  void Symbol(uint32_t frame, const std::string& function, uint32_t line) {
    symbols_.add_frame(frame);
    symbols_.add_function(builder_.InternString(function));
    symbols_.add_file(builder_.InternString("/src/model.cc"));
    symbols_.add_line(line);
    symbols_.set_count(static_cast<uint32_t>(symbols_.frame_size()));
  }
  // "NAME PLACE" per frame.
  std::vector<std::string> Describe(const std::vector<uint32_t>& frames) {
    const uint32_t stack = builder_.InternStack(frames, 0);
    definitions_.Add(builder_.TakeNew()).IgnoreError();
    definitions_.Add(symbols_).IgnoreError();
    std::vector<std::string> texts;
    frames_ = DescribeStack(definitions_, stack);
    for (const FrameText& f : frames_) {
      texts.push_back(f.Name() + (f.Place().empty() ? "" : " " + f.Place()));
    }
    return texts;
  }

  format::DefinitionsBuilder builder_;
  format::Definitions definitions_;
  gmt::Symbols symbols_;
  std::vector<FrameText> frames_;
};

TEST_F(FramesTest, FrameWithoutANameIsModuleAndOffset) {
  EXPECT_THAT(Describe({Native(0x1a2b)}), testing::ElementsAre("libmodel.so+0x1a2b"));
}

TEST_F(FramesTest, InlinedCallsAreFramesOfTheirOwn) {
  const uint32_t native = Native(0x1a2b);
  Symbol(native, "Inner", 3);
  Symbol(native, "Outer", 7);
  EXPECT_THAT(Describe({native, Named("forward", "/home/me/model.py", 88)}),
              testing::ElementsAre("Inner model.cc:3", "Outer model.cc:7", "forward model.py:88"));
  EXPECT_EQ(frames_[2].language, "python");
}

TEST_F(FramesTest, LeadingFrameIsTheInnermostThatIsNoNoise) {
  Describe(
      {Named("cudaMalloc", "", 0), Named("_PyEval_EvalFrame", "", 0), Named("load", "a.py", 1)});
  EXPECT_EQ(LeadingFrame(frames_), 2);
  Describe({Named("cudaMalloc", "", 0)});
  EXPECT_EQ(LeadingFrame(frames_), 0);
  EXPECT_EQ(LeadingFrame(std::vector<FrameText>{}), -1);
}

// A stack as the roles of its frames, innermost first: L library, O operator, P profiler, S own,
// D dispatcher; in lower case of Python code.
std::vector<FrameText> Frames(const std::string& roles) {
  std::vector<FrameText> frames;
  for (char c : roles) {
    FrameText& frame = frames.emplace_back();
    frame.function = c;
    frame.language = islower(c) ? "python" : "c++";
    switch (toupper(c)) {
      case 'L':
        frame.role = symbols::FrameRole::kLibrary;
        break;
      case 'O':
        frame.role = symbols::FrameRole::kOperator;
        break;
      case 'P':
        frame.role = symbols::FrameRole::kProfiler;
        break;
      case 'D':
        frame.role = symbols::FrameRole::kDispatcher;
        break;
      default:
        frame.role = symbols::FrameRole::kOwn;
    }
  }
  return frames;
}

TEST(Headline, OperatorStandsInWhereNoNativeLibraryIsBetween) {
  EXPECT_EQ(LeadingFrame(Frames("PODLDs")), 3);
  EXPECT_EQ(LeadingFrame(Frames("PODDs")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PODDls")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PODDS")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PO")), 1);
}

TEST(Headline, OwnFrameIsTheProgramsOwnPythonLineFirst) {
  EXPECT_EQ(OwnFrame(Frames("PLDldsdsD")), 5);
  EXPECT_EQ(OwnFrame(Frames("SLdsD")), 3);  // an extension of the program's own, called from Python
  EXPECT_EQ(OwnFrame(Frames("PLDdlS")), 4);
  EXPECT_EQ(OwnFrame(Frames("PLDS")), 3);
  EXPECT_EQ(OwnFrame(Frames("PLDL")), 1);
  EXPECT_EQ(OwnFrame(Frames("PD")), 0);
  EXPECT_EQ(OwnFrame(std::vector<FrameText>{}), -1);
}

TEST(Headline, OwnFrameIsNeverFurtherInThanTheLeadingOne) {
  for (int code = 0; code < 7 * 7 * 7 * 7; ++code) {
    std::string roles;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 7) roles += "LOPSDls"[rest % 7];
    EXPECT_LE(LeadingFrame(Frames(roles)), OwnFrame(Frames(roles))) << roles;
  }
}

TEST(WithoutNoise, KeepsWhatIsShownAndWhatWasCalled) {
  const auto kept = [](const std::string& roles) {
    std::string functions;
    for (const FrameText& frame : WithoutNoise(Frames(roles))) functions += frame.function;
    return functions;
  };
  EXPECT_EQ(kept("PLDldsdsD"), "Llss");
  EXPECT_EQ(kept("PODs"), "Os");
  EXPECT_EQ(kept("PD"), "P");
  EXPECT_EQ(kept(""), "");
}

FrameText InModule(const char* function, const char* module) {
  FrameText frame;
  frame.function = function;
  frame.module = module;
  frame.language = "c++";
  return frame;
}

FrameText InCheckpoint(const char* function) {
  FrameText frame;
  frame.function = function;
  frame.file = "/x/site-packages/torch/utils/checkpoint.py";
  frame.language = "python";
  return frame;
}

TEST(LibraryOfTest, InnermostKnownLibraryTookTheMemory) {
  EXPECT_EQ(
      LibraryOf({InModule("cuMemCreate", "/x/libcuda.so.1"), InModule("f", "/x/libcublas.so.12"),
                 InModule("g", "/x/libcusolver.so.11"), InModule("main", "/x/a.out")}),
      "cuBLAS");
  EXPECT_EQ(LibraryOf({InModule("cudaMalloc", "/x/libcudart.so.12"), InModule("main", "/x/a.out")}),
            "the program");
  EXPECT_EQ(LibraryOf({}), "");
}

TEST(RecomputationTest, CheckpointedForwardIsNoneUntilItIsRunAgain) {
  EXPECT_FALSE(IsRecomputation({InCheckpoint("checkpoint")}));
  EXPECT_FALSE(IsRecomputation({InCheckpoint("CheckpointFunction.forward")}));
  EXPECT_TRUE(IsRecomputation({InCheckpoint("CheckpointFunction.backward")}));
  EXPECT_TRUE(IsRecomputation({InCheckpoint("_f.<locals>.recompute_fn")}));
  FrameText own = InCheckpoint("backward");
  own.file = "/src/model.py";
  EXPECT_FALSE(IsRecomputation({own}));
}

}  // namespace
}  // namespace gmt::analysis
