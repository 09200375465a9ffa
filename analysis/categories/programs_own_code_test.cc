// Programs that create modules and replace parameters with code of their own.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/testing/training_script.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kTensorBytes = 4096, kActivationBytes = 6144;
constexpr uint64_t kParameterAt = 0x1000, kActivationAt = 0x300000, kGradientAt = 0x400000;

class ProgramsOwnCodeTest : public ::testing::Test {
 protected:
  // A stack without the names of classes, as Python 3.10 and snapshots have it.
  uint32_t InInit(const std::vector<std::string>& files) {
    TrainingScript::Places places{
        {"torch::autograd::THPVariable_empty(_object*, _object*, _object*)"}};
    for (const std::string& file : files) places.push_back({"__init__", file});
    places.push_back({"main", "/src/train.py"});
    return s_.Stack(places);
  }
  uint32_t InStep(const std::string& op) {
    return s_.Stack({{op},
                     {"step", "/src/my_optimizer.py"},
                     {"Optimizer.profile_hook_step.<locals>.wrapper",
                      TrainingScript::Torch("optim/optimizer.py")},
                     {"main", "/src/train.py"}});
  }
  // Runs a step that replaces the parameter at `from` by one at `to`, and its state in the same
  // way. A replaced tensor of the state is freed when the next one has been made.
  void ReplacingStep(uint64_t from, uint64_t to) {
    s_.Block(kActivationAt, kActivationBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kGradientAt, kTensorBytes, s_.InBackward("MmBackward0"));
      s_.Free(kActivationAt);
    });
    s_.Optimizer([&] {
      s_.Block(to + kState, kTensorBytes, InStep("at::_ops::add_Tensor::call"));
      s_.Block(kTemporaryAt, kTensorBytes, InStep("at::_ops::mul_Tensor::call"));
      s_.Block(to, kTensorBytes, InStep("at::_ops::sub_Tensor::call"));
      s_.Free(kTemporaryAt);
      s_.Free(from);
      if (from != kParameterAt) s_.Free(from + kState);
    });
    s_.Free(kGradientAt);
  }
  Category At(uint64_t address) {
    if (!categories_) {
      trace_.emplace(s_.script().Build());
      examination_.emplace(*trace_, s_.script().definitions());
      categories_.emplace(Categorize(*examination_));
    }
    for (RowId row = trace_->rows.count(); row-- > 0;) {
      if (trace_->rows.address[row] == address) return categories_->Of(row).category;
    }
    ADD_FAILURE() << "no memory at " << address;
    return Category::kUnknown;
  }
  static constexpr uint64_t kState = 0x80000, kTemporaryAt = 0x500000;

  TrainingScript s_;

 private:
  std::optional<Trace> trace_;
  std::optional<Examination> examination_;
  std::optional<Categories> categories_;
};

TEST_F(ProgramsOwnCodeTest, WhatAModuleCreatesIsItsParameter) {
  s_.Block(kParameterAt, kTensorBytes, InInit({"/src/layers.py", "/src/model.py"}));
  for (int i = 0; i < 3; ++i) {
    s_.Block(kActivationAt, kActivationBytes,
             s_.Stack({{"at::native::linear"},
                       {"forward", "/src/layers.py"},
                       {"_call_impl", TrainingScript::Torch("nn/modules/module.py")},
                       {"forward", "/src/model.py"},
                       {"_call_impl", TrainingScript::Torch("nn/modules/module.py")},
                       {"main", "/src/train.py"}}));
    s_.Free(kActivationAt);
  }
  EXPECT_EQ(At(kParameterAt), Category::kParameters);
}

TEST_F(ProgramsOwnCodeTest, WhatADataSetCreatesBesideTheModelIsAnInput) {
  s_.Block(kParameterAt, kTensorBytes, InInit({"/src/model.py"}));
  s_.Block(kActivationAt, kActivationBytes, s_.InForward());
  EXPECT_EQ(At(kParameterAt), Category::kInputs);
}

TEST_F(ProgramsOwnCodeTest, WhatAnOptimizerPutsInAParametersPlaceIsTheParameter) {
  s_.Block(kParameterAt, kTensorBytes, s_.Parameter());
  ReplacingStep(kParameterAt, 0x600000);
  ReplacingStep(0x600000, 0x700000);
  ReplacingStep(0x700000, 0x800000);
  for (const uint64_t at : {0x600000, 0x700000, 0x800000}) {
    EXPECT_EQ(At(at), Category::kParameters) << at;
    EXPECT_EQ(At(at + kState), Category::kOptimizerState) << at;
  }
  EXPECT_EQ(At(kTemporaryAt), Category::kTemporaries);
}

TEST_F(ProgramsOwnCodeTest, AnOptimizersStateIsNoParameterIfAGradientIsFreedBesideIt) {
  s_.Block(kParameterAt, kTensorBytes, s_.Parameter());
  for (uint64_t step = 0; step < 3; ++step) {
    s_.Block(kActivationAt, kActivationBytes, s_.InForward());
    s_.Backward([&] {
      s_.Block(kGradientAt, kTensorBytes, s_.InBackward("MmBackward0"));
      s_.Free(kActivationAt);
    });
    s_.Optimizer([&] {
      if (step == 0) s_.Block(0x600000, kTensorBytes, s_.State());
      s_.Free(kGradientAt);
    });
  }
  EXPECT_EQ(At(0x600000), Category::kOptimizerState);
  EXPECT_EQ(At(kParameterAt), Category::kParameters);
}

}  // namespace
}  // namespace gmt::analysis
