#include "answers/stacks/stack_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmt::answers {
namespace {

using analysis::FrameText;
using symbols::FrameRole;
using ::testing::ElementsAre;

FrameText Python(const char* function, const char* file, uint32_t line, FrameRole role) {
  FrameText frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.language = "python";
  frame.role = role;
  return frame;
}

FrameText Native(const char* function) {
  FrameText frame;
  frame.function = function;
  frame.language = "c++";
  frame.role = FrameRole::kLibrary;
  return frame;
}

// A library's model in a library's training loop.
std::vector<FrameText> LibraryTrainerStack() {
  return {Native("at::native::linear(at::Tensor const&)"),
          Python("Linear.forward", "/x/torch/nn/linear.py", 134, FrameRole::kLibrary),
          Python("Module._call_impl", "/x/torch/nn/modules/module.py", 9, FrameRole::kDispatcher),
          Python("MLP.forward", "/x/lib/gpt.py", 164, FrameRole::kLibrary),
          Python("Module._call_impl", "/x/torch/nn/modules/module.py", 9, FrameRole::kDispatcher),
          Python("Trainer.train", "/x/lib/trainer.py", 2500, FrameRole::kLibrary),
          Python("main", "/src/train.py", 20, FrameRole::kOwn),
          Python("<module>", "/src/train.py", 30, FrameRole::kOwn)};
}

TEST(StackTextTest, RowHasTheProgramsLineAndThePartOfTheModel) {
  EXPECT_EQ(StackLine(LibraryTrainerStack(), 100),
            "main (train.py:20) > MLP.forward (gpt.py:164) > at::native::linear");
  EXPECT_THAT(StackLines(LibraryTrainerStack(), FramesShown::kFolded, 100),
              ElementsAre("main (train.py:20) > MLP.forward (gpt.py:164) > at::native::linear",
                          "  < <module> (train.py:30)"));
}

TEST(StackTextTest, NarrowRowKeepsThePartOfTheModel) {
  EXPECT_EQ(StackLine(LibraryTrainerStack(), 50), "main (train.py:20) > MLP.forward (gpt.py:164)");
  EXPECT_THAT(StackLines(LibraryTrainerStack(), FramesShown::kFolded, 50),
              ElementsAre("main (train.py:20) > MLP.forward (gpt.py:164)", "  > at::native::linear",
                          "  < <module> (train.py:30)"));
}

TEST(StackTextTest, ProgramsOwnModuleLeadsAndItsLoopFollows) {
  std::vector<FrameText> frames = LibraryTrainerStack();
  frames[3].role = FrameRole::kOwn;
  EXPECT_THAT(StackLines(frames, FramesShown::kFolded, 100),
              ElementsAre("MLP.forward (gpt.py:164) > at::native::linear",
                          "  < Trainer.train (trainer.py:2500)", "  < main (train.py:20)",
                          "  < <module> (train.py:30)"));
}

TEST(StackTextTest, BackwardPassLeadsWithItsNode) {
  std::vector<FrameText> frames = {
      Native("at::cuda::getNewWorkspace()"),
      Native("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)")};
  EXPECT_EQ(StackLine(frames, 100), "MmBackward0 > at::cuda::getNewWorkspace");
}

TEST(StackTextTest, LayerKeepsItsInnermostModules) {
  EXPECT_EQ(LayerText("GPT > Block > MLP > Linear (gpt.py:45)", 100),
            "GPT > Block > MLP > Linear (gpt.py:45)");
  EXPECT_EQ(LayerText("GPT > Block > MLP > Linear (gpt.py:45)", 34),
            "... > MLP > Linear (gpt.py:45)");
  EXPECT_EQ(LayerText("Linear (gpt.py:45)", 5), "Linear (gpt.py:45)");
}

TEST(StackTextTest, WithoutFramesTheTextIsNoStack) {
  EXPECT_EQ(StackLine({}, 100), "no stack was recorded");
  EXPECT_THAT(StackLines({}, FramesShown::kRaw, 100), ElementsAre("no stack was recorded"));
}

}  // namespace
}  // namespace gmt::answers
