#include "analysis/module_path.h"

#include <gtest/gtest.h>

namespace gmt::analysis {
namespace {

FrameText Python(const std::string& function, const std::string& file, uint32_t line) {
  FrameText frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.language = "python";
  return frame;
}
FrameText Native(const std::string& function) {
  FrameText frame;
  frame.function = function;
  frame.language = "c++";
  return frame;
}
FrameText Call() { return Python("Module._call_impl", "/x/torch/nn/modules/module.py", 1790); }

TEST(ModulePathTest, ClassesFromTheOutsideInWithTheLineOfThePrograms) {
  EXPECT_EQ(
      ModulePath(
          {Native("at::linear"), Python("Linear.forward", "/x/torch/nn/modules/linear.py", 125),
           Native("method_vectorcall"), Call(), Python("Block.forward", "/src/gpt.py", 45), Call(),
           Python("GPT.forward", "/src/gpt.py", 61), Call(), Python("main", "/src/train.py", 9)}),
      "GPT > Block > Linear (gpt.py:45)");
}

TEST(ModulePathTest, FunctionsThatAModuleCallsAreNoModules) {
  EXPECT_EQ(ModulePath({Native("at::softmax"), Python("attend", "/src/gpt.py", 20),
                        Python("Attention.forward", "/src/gpt.py", 33), Call()}),
            "Attention (gpt.py:33)");
}

TEST(ModulePathTest, OldPythonsHaveNoClassesAndLinesInstead) {
  EXPECT_EQ(ModulePath({Python("forward", "/x/torch/nn/modules/linear.py", 125), Call(),
                        Python("forward", "/src/gpt.py", 45), Call()}),
            "forward (gpt.py:45) > forward (linear.py:125)");
}

TEST(ModulePathTest, OutsideOfModulesThereIsNone) {
  EXPECT_EQ(ModulePath({}), "");
  EXPECT_EQ(ModulePath({Native("cudaMalloc"), Python("main", "/src/train.py", 9)}), "");
}

}  // namespace
}  // namespace gmt::analysis
