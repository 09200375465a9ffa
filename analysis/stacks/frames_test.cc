#include "analysis/stacks/frames.h"

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

TEST_F(FramesTest, PathsOfWindowsHaveSlashes) {
  Describe({Named("forward", "C:\\Python310\\lib\\site-packages\\torch\\nn\\linear.py", 116)});
  EXPECT_EQ(frames_[0].file, "C:/Python310/lib/site-packages/torch/nn/linear.py");
  EXPECT_EQ(frames_[0].Place(), "linear.py:116");
  EXPECT_EQ(frames_[0].role, symbols::FrameRole::kLibrary);
}

TEST_F(FramesTest, InlinedCallsAreFramesOfTheirOwn) {
  const uint32_t native = Native(0x1a2b);
  Symbol(native, "Inner", 3);
  Symbol(native, "Outer", 7);
  EXPECT_THAT(Describe({native, Named("forward", "/home/me/model.py", 88)}),
              testing::ElementsAre("Inner model.cc:3", "Outer model.cc:7", "forward model.py:88"));
  EXPECT_EQ(frames_[2].language, "python");
}

TEST_F(FramesTest, LeadingFrameIsTheInnermostThatIsNotNoise) {
  Describe(
      {Named("cudaMalloc", "", 0), Named("_PyEval_EvalFrame", "", 0), Named("load", "a.py", 1)});
  EXPECT_EQ(LeadingFrame(frames_), 2);
  Describe({Named("cudaMalloc", "", 0)});
  EXPECT_EQ(LeadingFrame(frames_), 0);
  EXPECT_EQ(LeadingFrame(std::vector<FrameText>{}), -1);
}

// Returns a stack with these roles of its frames, innermost first: L library, O operator, P
// profiler, S own, D dispatcher; lower case for Python code.
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

TEST(Headline, OperatorLeadsIfNoNativeLibraryIsBetween) {
  EXPECT_EQ(LeadingFrame(Frames("PODLDs")), 3);
  EXPECT_EQ(LeadingFrame(Frames("PODDs")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PODDls")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PODDS")), 1);
  EXPECT_EQ(LeadingFrame(Frames("PO")), 1);
}

TEST(Headline, OwnFrameIsTheProgramsOwnPythonLineFirst) {
  EXPECT_EQ(OwnFrame(Frames("PLDldsdsD")), 5);
  EXPECT_EQ(OwnFrame(Frames("SLdsD")), 3);  // the program's own extension, called from Python
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

TEST(Headline, NameIsPreferredOverModuleAndOffset) {
  std::vector<FrameText> frames = Frames("PLLs");
  frames[1].function = "";
  EXPECT_EQ(LeadingFrame(frames), 2);
  frames[2].function = "";
  EXPECT_EQ(LeadingFrame(frames), 1);
}

FrameText PythonIn(const char* function, const char* file, symbols::FrameRole role) {
  FrameText frame;
  frame.function = function;
  frame.file = file;
  frame.language = "python";
  frame.role = role;
  return frame;
}
FrameText Library(const char* function, const char* file = "/x/site-packages/lib/model.py") {
  return PythonIn(function, file, symbols::FrameRole::kLibrary);
}
FrameText Own(const char* function) {
  return PythonIn(function, "/src/train.py", symbols::FrameRole::kOwn);
}
FrameText PyTorch(const char* function) {
  return Library(function, "/x/site-packages/torch/nn/modules/linear.py");
}
FrameText Module() {
  return PythonIn("Module._call_impl", "/x/site-packages/torch/nn/modules/module.py",
                  symbols::FrameRole::kDispatcher);
}
FrameText Operator() { return Frames("L").front(); }

std::string FunctionAt(const std::vector<FrameText>& frames, int i) {
  return i < 0 ? "" : frames[static_cast<size_t>(i)].function;
}
std::string InLibrary(const std::vector<FrameText>& frames) {
  return FunctionAt(frames, LibraryFrame(frames));
}

TEST(LibraryFrameTest, InnermostPartOfAModelThatIsNotPyTorchs) {
  EXPECT_EQ(
      InLibrary({Operator(), PyTorch("Linear.forward"), Module(), Library("MLP.forward"), Module(),
                 Library("Block.forward"), Module(), Library("Trainer.train"), Own("main")}),
      "MLP.forward");
}

TEST(LibraryFrameTest, OutsideModulesTheInnermostOfAll) {
  EXPECT_EQ(
      InLibrary({Operator(), PyTorch("Adam._init_group"), Library("Trainer.train"), Own("main")}),
      "Adam._init_group");
}

TEST(LibraryFrameTest, NoneIfTheProgramCalledPyTorch) {
  EXPECT_EQ(InLibrary({Operator(), PyTorch("Linear.forward"), Module(), Own("Net.forward")}), "");
  EXPECT_EQ(InLibrary({Operator(), Own("main")}), "");
  EXPECT_EQ(InLibrary({}), "");
}

TEST(LibraryFrameTest, OnlyBelowTheProgramsInnermostLine) {
  EXPECT_EQ(InLibrary({Operator(), PyTorch("Linear.forward"), Module(), Own("Net.forward"),
                       Module(), Library("Trainer.train"), Own("main")}),
            "");
}

TEST(OwnFrameTest, LibraryOtherThanPyTorchIsUsedIfNoFrameIsThePrograms) {
  const std::vector<FrameText> frames = {Operator(), PyTorch("Linear.forward"),
                                         Module(),   Library("MLP.forward"),
                                         Module(),   Library("serve")};
  EXPECT_EQ(FunctionAt(frames, OwnFrame(frames)), "MLP.forward");
  EXPECT_EQ(InLibrary(frames), "");
}

TEST(OwnFrameTest, BackwardPassUsesTheNode) {
  std::vector<FrameText> frames = Frames("PLLDD");
  frames[1].function = "at::cuda::blas::gemm<float>(char)";
  frames[2].function = "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)";
  EXPECT_EQ(OwnFrame(frames), 2);
  EXPECT_EQ(frames[2].Name(), "MmBackward0");
  frames[2].function = "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)";
  EXPECT_EQ(frames[2].Name(), "AccumulateGrad");
}

TEST(CallersTest, FramesOfTheProgramAndTheLibraryFunctionsThatItCalled) {
  const auto callers = [](const std::vector<FrameText>& frames) {
    std::string functions;
    for (const int i : Callers(frames)) functions += FunctionAt(frames, i) + " ";
    return functions;
  };
  EXPECT_EQ(callers({Operator(), Own("training_step"), Library("strategy"), Library("fit"),
                     Own("train"), Own("main")}),
            "fit train main ");
  EXPECT_EQ(callers({Operator(), Library("forward"), Library("run"), Library("start")}),
            "run start ");
  EXPECT_EQ(callers({Operator(), Own("main")}), "");
}

TEST(WithoutNoise, KeepsShownFramesAndTheLeadingFrame) {
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

TEST(LibraryOfTest, InnermostKnownLibraryAllocatedTheMemory) {
  EXPECT_EQ(
      LibraryOf({InModule("cuMemCreate", "/x/libcuda.so.1"), InModule("f", "/x/libcublas.so.12"),
                 InModule("g", "/x/libcusolver.so.11"), InModule("main", "/x/a.out")}),
      "cuBLAS");
  EXPECT_EQ(LibraryOf({InModule("cudaMalloc", "/x/libcudart.so.12"), InModule("main", "/x/a.out")}),
            "the program");
  EXPECT_EQ(LibraryOf({}), "");
}

TEST(RecomputationTest, CheckpointedForwardIsRecomputationOnlyWhenRunAgain) {
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
