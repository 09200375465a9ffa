// analysis/categories/categories.h
//
// Categories: the purpose of each piece of memory. It is decided first by how long the piece lives,
// measured in steps and phases of the training loop; then by the code that allocated it, using
// rules (analysis/categories/category_rules.txt, preceded by the user's own); then by its size.
// Every piece gets a reason and a confidence. What cannot be determined is kUnknown, never guessed.
//
//   born, dies            stack                      category
//   before step 1, never  Module._apply              parameters        high
//   backward 7, step 8    at::mm < autograd          gradients         medium; of a parameter's size
//   forward 7, backward 7 at::linear < Net.forward   activations       high
//   forward 7, forward 7  at::softmax                temporaries       high
//
// A row (analysis/trace/trace.h) has one category for its whole life.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_CATEGORIES_CATEGORIES_H_
#define GMT_ANALYSIS_CATEGORIES_CATEGORIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/confidence.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

class CategoryRules;

enum class Category : uint8_t {
  kUnknown,
  kParameters,  // and buffers
  kGradients,
  kOptimizerState,  // and master weights
  kActivations,
  kRecomputed,  // activations that checkpointing recomputes in the backward pass
  kTemporaries,
  kInputs,
  kWorkspaces,     // of cuBLAS, cuBLASLt, cuDNN
  kCommunication,  // NCCL, buckets of DDP, gathers of FSDP
  kGraphPools,     // private pools of CUDA graphs
  kKvCache,
  kOtherLibraries,
  kCache,  // what a caching allocator holds in addition to its blocks
};
inline constexpr size_t kCategories = 14;

// As in JSON and in rules: "optimizer_state"; for people: "optimizer state".
std::string_view NameOf(Category category);
std::string TextOf(Category category);

class Categories {
 public:
  struct Assignment {
    Category category = Category::kUnknown;
    Confidence confidence = Confidence::kLow;
    uint16_t reason = 0;  // index of reasons
  };

  const Assignment& Of(RowId row) const { return assignments_[row]; }
  // "lives across steps; its stack has Optimizer._init_group".
  const std::string& Reason(RowId row) const { return ReasonText(Of(row).reason); }
  const std::string& ReasonText(uint16_t reason) const { return reasons_[reason]; }

  // Called by Categorize().
  Categories(std::vector<Assignment> assignments, std::vector<std::string> reasons)
      : assignments_(std::move(assignments)), reasons_(std::move(reasons)) {}

 private:
  std::vector<Assignment> assignments_;  // by row
  std::vector<std::string> reasons_;
};

// With the built-in rules.
Categories Categorize(const Examination& examination);
Categories Categorize(const Examination& examination, const CategoryRules& rules);

// What a device holds after a step, by category: most bytes first.
struct CategoryUse {
  Category category = Category::kUnknown;
  // Each byte once (analysis/examination/layers.h): uses add up to what the device holds.
  uint64_t bytes = 0;
  uint64_t count = 0;
  Confidence confidence = Confidence::kLow;  // that of most bytes
  std::string reason;                        // that of most bytes
};

// Adds up rows by category.
class CategoryTotals {
 public:
  // REQUIRES: `categories` outlives this object.
  explicit CategoryTotals(const Categories& categories) : categories_(categories) {}
  void Add(RowId row, uint64_t bytes);
  // Most bytes first.
  std::vector<CategoryUse> Uses() const;

 private:
  struct Total {
    uint64_t bytes = 0, count = 0;
    std::map<std::pair<uint16_t, Confidence>, uint64_t> bytes_by_reason;
  };
  const Categories& categories_;
  std::map<Category, Total> totals_;
};

std::vector<CategoryUse> CategoriesAt(const Examination& examination, const Categories& categories,
                                      int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_CATEGORIES_H_
