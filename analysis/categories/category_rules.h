// analysis/categories/category_rules.h
//
// CategoryRules: what memory is for by the code that allocated it, with the life and the birth that
// each rule asks for. The rules are text: analysis/categories/category_rules.txt, which is built in and
// states the format, with a user's own in front of it.
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

// The text that is built in.
std::string_view BuiltInCategoryRules();

struct CategoryRule {
  Category category = Category::kUnknown;
  uint8_t lives = 0, born = 0;  // one bit for each Lifespan and Born that it fits
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
  // Those of the file at `path`, then the built-in ones. An error names file and line, and what may
  // stand there.
  static absl::StatusOr<CategoryRules> WithFile(const std::string& path);
  // `name`: what errors call the text.
  static absl::StatusOr<CategoryRules> Parse(std::string_view text, const std::string& name);

  const std::vector<CategoryRule>& rules() const { return rules_; }

 private:
  std::vector<CategoryRule> rules_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_CATEGORY_RULES_H_
