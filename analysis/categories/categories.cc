#include "analysis/categories/categories.h"

#include <algorithm>
#include <array>
#include <map>

#include "analysis/layers.h"

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
  return {std::vector<Categories::Assignment>(examination.trace().rows.count()), {"not known"}};
}

std::vector<CategoryUse> CategoriesAt(const Examination& examination, const Categories& categories,
                                      int32_t device, Step step) {
  const Trace& trace = examination.trace();
  std::map<Category, CategoryUse> uses;
  std::map<Category, std::map<uint16_t, std::pair<uint64_t, RowId>>> reasons;
  for (const OwnBytes& own : OwnBytesAfter(trace, step)) {
    if (trace.rows.device[own.row] != device || own.bytes == 0) continue;
    const Categories::Assignment& assigned = categories.Of(own.row);
    CategoryUse& use = uses[assigned.category];
    use.category = assigned.category;
    use.bytes += own.bytes;
    ++use.count;
    auto& [bytes, row] = reasons[assigned.category][assigned.reason];
    bytes += own.bytes;
    row = own.row;
  }
  std::vector<CategoryUse> result;
  for (auto& [category, use] : uses) {
    const auto& of = reasons[category];
    const auto most = std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) {
      return a.second.first < b.second.first;
    });
    use.confidence = categories.Of(most->second.second).confidence;
    use.reason = categories.Reason(most->second.second);
    result.push_back(std::move(use));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const CategoryUse& a, const CategoryUse& b) { return a.bytes > b.bytes; });
  return result;
}

}  // namespace gmt::analysis
