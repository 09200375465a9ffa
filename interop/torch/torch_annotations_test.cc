#include "interop/torch/torch_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "analysis/testing/event_script.h"

namespace gmt::interop {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMs = 1'000'000;

std::vector<std::string> Annotations(analysis::EventScript& script,
                                     const TorchSelection& selection = {}) {
  const analysis::Trace trace = script.Build();
  std::vector<std::string> annotations;
  for (const TorchAnnotation& annotation :
       TorchAnnotations(trace, script.definitions(), selection, 0)) {
    annotations.push_back(absl::StrCat(annotation.name, annotation.ends ? " END" : " START"));
  }
  return annotations;
}

analysis::FrameText Python(const std::string& function, const std::string& file) {
  analysis::FrameText frame;
  frame.function = function;
  frame.file = file;
  frame.line = 40;
  frame.language = "python";
  return frame;
}

TEST(TorchAnnotationsTest, RangesNest) {
  analysis::EventScript script;
  script.Begin("epoch", 1);
  script.Begin("backward", 2);
  script.End("backward", 2);
  script.End("epoch", 1);
  EXPECT_THAT(Annotations(script),
              ElementsAre("epoch START", "backward START", "backward END", "epoch END"));
}

TEST(TorchAnnotationsTest, StepLastsUntilTheNext) {
  analysis::EventScript script;
  script.Mark("step", 0);
  script.Mark("step", 1);
  EXPECT_THAT(Annotations(script), ElementsAre("step 0 START", "step 0 END", "step 1 START"));
}

TEST(TorchAnnotationsTest, AnyOtherMarkEndsAtOnce) {
  analysis::EventScript script;
  script.Mark("loaded", 3);
  EXPECT_THAT(Annotations(script), ElementsAre("loaded 3 START", "loaded 3 END"));
}

TEST(TorchAnnotationsTest, OnlyThoseInTheWindowAreReturned) {
  analysis::EventScript script;
  script.Begin("a", 1);  // 1 ms
  script.End("a", 1);
  script.Begin("b", 2);  // 3 ms
  TorchSelection selection;
  selection.window.from_ns = 2 * kMs;
  EXPECT_THAT(Annotations(script, selection), ElementsAre("a END", "b START"));
}

TEST(TorchAnnotationsTest, RecordFunctionIsNamedAfterItsOpener) {
  const auto enter = Python("record_function.__enter__", "/x/torch/autograd/profiler.py");
  const auto step =
      Python("Optimizer.profile_hook_step.<locals>.wrapper", "/x/torch/optim/optimizer.py");
  const auto zero = Python("Optimizer.zero_grad", "/x/torch/optim/optimizer.py");
  const auto main = Python("main", "/src/train.py");
  EXPECT_EQ(RecordFunctionName({enter, step, main}), "Optimizer.step");
  EXPECT_EQ(RecordFunctionName({enter, zero, main}), "Optimizer.zero_grad");
  EXPECT_EQ(RecordFunctionName({enter, main}), "train.py:40 main");
  EXPECT_EQ(RecordFunctionName({enter}), "record_function");
}

}  // namespace
}  // namespace gmt::interop
