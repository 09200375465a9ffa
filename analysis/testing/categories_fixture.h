// analysis/testing/categories_fixture.h
//
// For tests: a training loop whose blocks have fixed addresses, and the categories that they get.

#ifndef GMT_ANALYSIS_TESTING_CATEGORIES_FIXTURE_H_
#define GMT_ANALYSIS_TESTING_CATEGORIES_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "analysis/categories/categories.h"
#include "analysis/categories/category_rules.h"
#include "analysis/testing/training_script.h"
#include "format/event.h"

namespace gmt::analysis {

class CategoriesTest : public ::testing::Test {
 protected:
  // Addresses and sizes of the loop's blocks.
  static constexpr uint64_t kParameter = 0x10000, kBatch = 0x20000, kActivation = 0x30000,
                            kGradient = 0x40000, kState = 0x50000, kTemporary = 0x60000;
  static constexpr uint64_t kWeightBytes = 4096, kOtherBytes = 6144, kBatchBytes = 1536;

  // Returns the category of the n-th block born at an address.
  Category Of(uint64_t address, size_t n = 0) { return *AssignmentOf(address, n).first; }
  Confidence ConfidenceOf(uint64_t address, size_t n = 0) {
    return AssignmentOf(address, n).second.first;
  }
  std::string ReasonOf(uint64_t address, size_t n = 0) {
    return AssignmentOf(address, n).second.second;
  }
  std::pair<std::optional<Category>, std::pair<Confidence, std::string>> AssignmentOf(
      uint64_t address, size_t n) {
    Examine();
    for (RowId row = 0; row < trace_->rows.count(); ++row) {
      if (trace_->rows.address[row] != address || n-- > 0) continue;
      return {categories_->Of(row).category,
              {categories_->Of(row).confidence, categories_->Reason(row)}};
    }
    ADD_FAILURE() << "nothing was born at " << address;
    return {Category::kUnknown, {Confidence::kLow, ""}};
  }
  void Examine() {
    if (categories_) return;
    trace_ = std::make_unique<Trace>(s_.script().Build());
    examination_ = std::make_unique<Examination>(*trace_, s_.script().definitions());
    categories_ = rules_ ? Categorize(*examination_, *rules_) : Categorize(*examination_);
  }

  // Runs a step that keeps its gradient until the beginning of the next step.
  void TrainingStep(int index) {
    s_.Block(kBatch, kBatchBytes, s_.Batch());
    if (index > 0) s_.Free(kGradient);
    s_.Block(kTemporary, 512, s_.InForward("at::native::softmax"));
    s_.Block(kActivation, kOtherBytes, s_.InForward());
    s_.Free(kTemporary);
    s_.Backward([&] {
      s_.Block(kTemporary, kOtherBytes, s_.InBackward("GeluBackward0"));
      s_.Block(kGradient, kWeightBytes, s_.InBackward("MmBackward0"));
      s_.Free(kActivation);
      s_.Free(kTemporary);
    });
    s_.Optimizer([&] {
      if (index == 0) s_.Block(kState, kWeightBytes, s_.State());
      s_.Block(kTemporary, kWeightBytes, s_.InOptimizer("_multi_tensor_adam", "at::_foreach_sqrt"));
      s_.Free(kTemporary);
    });
    s_.Free(kBatch);
  }
  // Frees memory that was allocated before the recording began.
  format::Event& FreeFromBefore(uint64_t address, uint32_t stack, uint64_t size = kWeightBytes) {
    format::Event& event = s_.script().FreeBlock(address);
    event.present |= format::kHasSize;
    event.size = size;
    event.stack = stack;
    return event;
  }
  // Returns the stack of the program's own optimizer, a subclass of torch.optim.Optimizer.
  uint32_t OwnOptimizersStep() {
    return s_.Stack({{"at::native::mul(at::Tensor const&)"},
                     {"MyAdam.step", "/src/my_adam.py"},
                     {"Optimizer.profile_hook_step.<locals>.wrapper",
                      TrainingScript::Torch("optim/optimizer.py")},
                     {"main", "/src/train.py"}});
  }
  static void OnStream(format::Event& event, uint64_t stream) {
    event.present |= format::kHasStream;
    event.stream = stream;
  }
  void Loop(int steps = 5) {
    s_.Block(kParameter, kWeightBytes, s_.Parameter());
    for (int i = 0; i < steps; ++i) TrainingStep(i);
  }

  TrainingScript s_;
  std::optional<CategoryRules> rules_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Examination> examination_;
  std::optional<Categories> categories_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_CATEGORIES_FIXTURE_H_
