#include "answers/report/categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::Category;
using analysis::CategoryUse;
using Json = nlohmann::ordered_json;

constexpr size_t kBeforeReason = 52;

}  // namespace

std::string ReasonText(const CategoryUse& use, size_t width) {
  return Shortened(fmt::format("{}: {}", analysis::NameOf(use.confidence), use.reason), width);
}

std::string CategoriesText(const std::vector<CategoryUse>& uses, uint64_t total, size_t width) {
  if (uses.empty() || (uses.size() == 1 && uses.front().category == Category::kUnknown)) return "";
  std::string text = "used for\n";
  const size_t room = std::max<size_t>(width, kBeforeReason + 20) - kBeforeReason;
  for (const CategoryUse& use : uses) {
    text += fmt::format("{:>9} {:>6} {:>7}  {:<24} {}\n", Bytes(use.bytes),
                        Percent(static_cast<double>(use.bytes), static_cast<double>(total)),
                        Count(use.count), analysis::TextOf(use.category), ReasonText(use, room));
  }
  return text;
}

Json CategoriesJson(const std::vector<CategoryUse>& uses) {
  Json json = Json::array();
  for (const CategoryUse& use : uses) {
    json.push_back({{"category", analysis::NameOf(use.category)},
                    {"bytes", use.bytes},
                    {"count", use.count},
                    {"confidence", analysis::NameOf(use.confidence)},
                    {"reason", use.reason}});
  }
  return json;
}

void AddCategoryKeys(const std::vector<CategoryUse>& uses, Json& row) {
  const bool known = !uses.empty();
  row["category"] = known ? Json(analysis::NameOf(uses.front().category)) : Json(nullptr);
  row["confidence"] = known ? Json(analysis::NameOf(uses.front().confidence)) : Json(nullptr);
  row["reason"] = known ? Json(uses.front().reason) : Json(nullptr);
  if (uses.size() > 1) row["categories"] = CategoriesJson(uses);
}

}  // namespace gmt::answers
