// answers/report/categories.h
//
// Memory categories (analysis/categories/categories.h) in a report's text and JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_CATEGORIES_H_
#define GMT_ANSWERS_REPORT_CATEGORIES_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"

namespace gmt::answers {

// Returns a line for each category with the reason of most of its bytes, in about `width` columns.
// The lines add up to `total`. Returns "" if everything is unknown.
std::string CategoriesText(const std::vector<analysis::CategoryUse>& uses, uint64_t total,
                           size_t width);

// Returns "high: lives across steps; Module._apply (module.py)".
std::string ReasonText(const analysis::CategoryUse& use, size_t width);

nlohmann::ordered_json CategoriesJson(const std::vector<analysis::CategoryUse>& uses);

// Adds "category", "confidence" and "reason" of the largest category. If there are several, adds
// all of them as "categories".
void AddCategoryKeys(const std::vector<analysis::CategoryUse>& uses, nlohmann::ordered_json& row);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_CATEGORIES_H_
