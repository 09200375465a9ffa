// analysis/categories/category_rules.h
//
// CategoryRules: the purpose of memory by the code that allocated it, with the life and birth that
// each rule requires. The rules are text: analysis/categories/category_rules.txt, which is built in
// and describes the format, preceded by the user's own.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_CATEGORIES_CATEGORY_RULES_H_
#define GMT_ANALYSIS_CATEGORIES_CATEGORY_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/categories/lives.h"
#include "symbols/frame_pattern.h"

namespace gmt::analysis {

// The built-in text.
std::string_view BuiltInCategoryRules();

struct CategoryRule {
  Category category = Category::kUnknown;
  uint8_t lives = 0, born = 0;  // one bit for each matching Lifespan and Born
  bool is_users = false;
  symbols::FramePattern pattern;

  bool Fits(Lifespan life, Born born_in) const {
    return (lives >> static_cast<int>(life) & 1) != 0 &&
           (born >> static_cast<int>(born_in) & 1) != 0;
  }
};

class CategoryRules {
 public:
  static const CategoryRules& BuiltIn();
  // Returns the rules of the file at `path`, followed by the built-in ones. Errors name the file,
  // the line and what is allowed there.
  static absl::StatusOr<CategoryRules> WithFile(const std::string& path);
  // `name`: the text's name in errors.
  static absl::StatusOr<CategoryRules> Parse(std::string_view text, const std::string& name);

  const std::vector<CategoryRule>& rules() const { return rules_; }

 private:
  std::vector<CategoryRule> rules_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_CATEGORY_RULES_H_
