#include "analysis/stacks/module_path.h"

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

TEST(ModulePathTest, ClassesOutermostFirstWithTheProgramsLine) {
  EXPECT_EQ(
      ModulePath(
          {Native("at::linear"), Python("Linear.forward", "/x/torch/nn/modules/linear.py", 125),
           Native("method_vectorcall"), Call(), Python("Block.forward", "/src/gpt.py", 45), Call(),
           Python("GPT.forward", "/src/gpt.py", 61), Call(), Python("main", "/src/train.py", 9)}),
      "GPT > Block > Linear (gpt.py:45)");
}

TEST(ModulePathTest, FunctionsThatAModuleCallsAreNotModules) {
  EXPECT_EQ(ModulePath({Native("at::softmax"), Python("attend", "/src/gpt.py", 20),
                        Python("Attention.forward", "/src/gpt.py", 33), Call()}),
            "Attention (gpt.py:33)");
}

TEST(ModulePathTest, DecoratorsHooksAndWrappersAreNotModules) {
  const auto hook =
      Python("Module._call_impl.<locals>.inner", "/x/torch/nn/modules/module.py", 1827);
  const auto decorator = Python("deprecate_kwarg.<locals>.wrapper", "/x/lib/deprecation.py", 173);
  const auto compiled = Python("_TorchDynamoContext.__call__.<locals>.compile_wrapper",
                               "/x/torch/_dynamo/eval.py", 9);
  const auto made =
      Python("Checkpointing.__init_subclass__.<locals>.forward", "/x/lib/layers.py", 5);
  EXPECT_EQ(ModulePath({Native("at::linear"),
                        Python("Linear.forward", "/x/torch/nn/modules/linear.py", 125), Call(),
                        Python("attend", "/x/lib/gpt.py", 20),
                        Python("Attention.forward", "/x/lib/gpt.py", 33), decorator, hook, Call(),
                        Python("Layer.forward", "/x/lib/gpt.py", 45), made, decorator, Call(),
                        Python("GPT.forward", "/x/lib/gpt.py", 61), compiled, hook, Call(),
                        Python("main", "/src/train.py", 9)}),
            "GPT > Layer > Attention > Linear (gpt.py:33)");
}

TEST(ModulePathTest, HooksOfACallBelongToNoClass) {
  const auto gather = Python("State._pre_forward", "/x/torch/distributed/fsdp/_state.py", 8);
  EXPECT_EQ(ModulePath({Native("at::empty"), gather, Call(),
                        Python("GPT.forward", "/src/gpt.py", 61), Call()}),
            "GPT (gpt.py:61)");
}

TEST(ModulePathTest, FunctionsWithAnotherNameAreNotShownAsClasses) {
  EXPECT_EQ(ModulePath({Native("at::add"), Python("Fast.run", "/src/fast.py", 7), Call(),
                        Python("GPT.forward", "/src/gpt.py", 61), Call()}),
            "GPT > Fast.run (fast.py:7)");
}

TEST(ModulePathTest, CompiledCodeIsShownForItsModules) {
  const auto call = Python("Runner.call", "/tmp/torchinductor_me/no/cnoys4ba.py", 1098);
  const auto wrapper = Python("call_func_at_runtime", "/x/torch/_functorch/_aot/utils.py", 138);
  EXPECT_EQ(ModulePath({Native("at::mm"), call, wrapper, Python("GPT.forward", "/src/gpt.py", 61),
                        Call()}),
            "GPT > compiled code (gpt.py:61)");
  EXPECT_EQ(ModulePath({Native("at::mm"), call, wrapper, Call()}), "compiled code");
}

TEST(ModulePathTest, OldPythonsHaveLinesInsteadOfClasses) {
  EXPECT_EQ(ModulePath({Python("forward", "/x/torch/nn/modules/linear.py", 125), Call(),
                        Python("forward", "/src/gpt.py", 45), Call()}),
            "forward (gpt.py:45) > forward (linear.py:125)");
}

TEST(ModulePathTest, OutsideModulesThereIsNoPath) {
  EXPECT_EQ(ModulePath({}), "");
  EXPECT_EQ(ModulePath({Native("cudaMalloc"), Python("main", "/src/train.py", 9)}), "");
}

}  // namespace
}  // namespace gmt::analysis
