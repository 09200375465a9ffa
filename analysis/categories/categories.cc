#include "analysis/categories/categories.h"

#include <algorithm>
#include <array>

#include "analysis/categories/categorizer.h"
#include "analysis/categories/category_rules.h"
#include "analysis/examination/layers.h"

namespace gmt::analysis {
namespace {

constexpr std::array<std::string_view, kCategories> kNames = {
    "unknown",         "parameters", "gradients",  "optimizer_state", "activations", "recomputed",
    "temporaries",     "inputs",     "workspaces", "communication",   "graph_pools", "kv_cache",
    "other_libraries", "cache"};

}  // namespace

std::string_view NameOf(Category category) { return kNames[static_cast<size_t>(category)]; }

std::string TextOf(Category category) {
  std::string text(NameOf(category));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

Categories Categorize(const Examination& examination) {
  return Categorize(examination, CategoryRules::BuiltIn());
}

Categories Categorize(const Examination& examination, const CategoryRules& rules) {
  return Categorizer(examination, rules).Make();
}

void CategoryTotals::Add(RowId row, uint64_t bytes) {
  const Categories::Assignment& assigned = categories_.Of(row);
  Total& total = totals_[assigned.category];
  total.bytes += bytes;
  ++total.count;
  total.bytes_by_reason[{assigned.reason, assigned.confidence}] += bytes;
}

std::vector<CategoryUse> CategoryTotals::Uses() const {
  std::vector<CategoryUse> uses;
  for (const auto& [category, total] : totals_) {
    const auto most =
        std::max_element(total.bytes_by_reason.begin(), total.bytes_by_reason.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto [reason, confidence] = most->first;
    uses.push_back(
        {category, total.bytes, total.count, confidence, categories_.ReasonText(reason)});
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const CategoryUse& a, const CategoryUse& b) { return a.bytes > b.bytes; });
  return uses;
}

std::vector<CategoryUse> CategoriesAt(const Examination& examination, const Categories& categories,
                                      int32_t device, Step step) {
  const Trace& trace = examination.trace();
  CategoryTotals totals(categories);
  for (const OwnBytes& own : OwnBytesAfter(trace, step)) {
    if (trace.rows.device[own.row] == device && own.bytes > 0) totals.Add(own.row, own.bytes);
  }
  return totals.Uses();
}

}  // namespace gmt::analysis
