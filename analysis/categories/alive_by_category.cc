#include "analysis/categories/alive_by_category.h"

namespace gmt::analysis {
namespace {

AliveReason ReasonOf(Category category) {
  switch (category) {
    case Category::kParameters:
      return AliveReason::kParameter;
    case Category::kGradients:
      return AliveReason::kGradient;
    case Category::kActivations:
    case Category::kRecomputed:
      return AliveReason::kSaved;
    case Category::kOptimizerState:
      return AliveReason::kOptimizerState;
    case Category::kInputs:
      return AliveReason::kInput;
    default:
      return AliveReason::kUnknown;
  }
}

// Memory of tensors: PyTorch would have reported a role if it had one.
bool WouldHaveRole(Category category) {
  switch (category) {
    case Category::kUnknown:
    case Category::kParameters:
    case Category::kGradients:
    case Category::kActivations:
    case Category::kRecomputed:
    case Category::kTemporaries:
    case Category::kKvCache:
      return true;
    default:
      return false;
  }
}

}  // namespace

AliveBecause WithoutRole(const Trace& trace, const Categories& categories, bool has_roles,
                         RowId row) {
  const Rows& rows = trace.rows;
  const Category category = categories.Of(row).category;
  const bool is_block = rows.IsBlock(row);
  // Memory from before the recording may have a role that was not recorded.
  const bool is_whole = rows.birth[row] != 0;
  if (has_roles && is_block && is_whole && WouldHaveRole(category))
    return {AliveReason::kProgram, true};
  return {ReasonOf(category), false};
}

}  // namespace gmt::analysis
