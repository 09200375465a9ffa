#include "answers/report/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "answers/report/categories.h"

namespace gmt::answers {
namespace {

using analysis::Category;
using analysis::CategoryUse;
using analysis::Growth;
using analysis::InputGrowth;
using analysis::StepProfile;
using Json = nlohmann::ordered_json;

constexpr size_t kUsesInLine = 3;
constexpr uint64_t kWorthShowing = 100;  // the smallest part worth showing is 1/100
constexpr size_t kStacksInJson = 50;

const StepProfile* Find(const std::vector<StepProfile>& profiles, int32_t device) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const StepProfile& p) { return p.device == device; });
  return found == profiles.end() ? nullptr : &*found;
}

using Parts = std::map<Category, int64_t>;

void Add(const std::vector<CategoryUse>& uses, int64_t factor, Parts& parts) {
  for (const CategoryUse& use : uses)
    parts[use.category] += factor * static_cast<int64_t>(use.bytes);
}

// Returns the largest parts of `whole` and the rest, which add up to it. `write` formats bytes.
template <typename Write>
std::string PartsText(const Parts& parts, uint64_t whole, Write write) {
  std::vector<std::pair<Category, int64_t>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  std::string text;
  auto left = static_cast<int64_t>(whole);
  for (size_t i = 0; i < sorted.size() && i < kUsesInLine && sorted[i].second != 0; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", analysis::TextOf(sorted[i].first),
                        write(sorted[i].second));
    left -= sorted[i].second;
  }
  // The parts are of one step, but the whole is the median of all steps. A small rest is therefore
  // not shown.
  if (std::abs(left) >= static_cast<int64_t>(whole / kWorthShowing) + 1)
    text += fmt::format("{}others {}", text.empty() ? "" : ", ", write(left));
  return text;
}

std::string FloorText(const StepProfile& profile) {
  Parts parts;
  Add(profile.floor_uses, 1, parts);
  return PartsText(parts, profile.floor, [](int64_t bytes) {
    return bytes < 0 ? SignedBytes(bytes) : Bytes(static_cast<uint64_t>(bytes));
  });
}

// Returns by how much the peak exceeds the floor in each category.
std::string VariableText(const StepProfile& profile) {
  Parts parts;
  Add(profile.peak_uses, 1, parts);
  Add(profile.floor_uses, -1, parts);
  return PartsText(parts, profile.variable(), SignedBytes);
}

// Gradients that exist throughout each step also live through its forward pass.
std::string KeptGradients(const StepProfile& profile) {
  for (const CategoryUse& use : profile.floor_uses) {
    if (use.category != analysis::Category::kGradients || use.bytes == 0) continue;
    return fmt::format(
        "  gradients  {:>9}   held during the forward pass; freed if "
        "optimizer.zero_grad(set_to_none=True) precedes it\n",
        Bytes(use.bytes));
  }
  return "";
}

std::string GrowthText(const InputGrowth& inputs) {
  std::string text = fmt::format(
      "  inputs of {} to {} per step; of the memory that a step "
      "allocates\n",
      Bytes(inputs.least), Bytes(inputs.most));
  text += fmt::format("    {:>9} grow with them", Bytes(inputs.linear_bytes));
  if (inputs.quadratic_bytes > 0) {
    text += fmt::format(", {} with their square", Bytes(inputs.quadratic_bytes));
  }
  text += fmt::format(", {} do not", Bytes(inputs.constant_bytes));
  if (inputs.unclear_bytes > 0) text += fmt::format(", {} unclear", Bytes(inputs.unclear_bytes));
  text += "\n";
  if (inputs.peak_with_twice > 0) {
    text += fmt::format("    {:>9} estimated peak with inputs twice the average\n",
                        Bytes(inputs.peak_with_twice));
  }
  return text;
}

Json InputsJson(const InputGrowth& inputs) {
  Json json = {{"least_bytes", inputs.least},
               {"most_bytes", inputs.most},
               {"average_bytes", inputs.average},
               {"constant_bytes", inputs.constant_bytes},
               {"linear_bytes", inputs.linear_bytes},
               {"quadratic_bytes", inputs.quadratic_bytes},
               {"unclear_bytes", inputs.unclear_bytes},
               {"peak_growth", analysis::NameOf(inputs.peak)},
               {"peak_bytes_with_twice",
                inputs.peak_with_twice == 0 ? Json(nullptr) : Json(inputs.peak_with_twice)},
               {"stacks", Json::array()}};
  for (size_t i = 0; i < inputs.stacks.size() && i < kStacksInJson; ++i) {
    const analysis::StackGrowth& stack = inputs.stacks[i];
    json["stacks"].push_back({{"id", absl::StrCat("stack/", stack.stack)},
                              {"bytes", stack.bytes},
                              {"growth", analysis::NameOf(stack.growth)},
                              {"bytes_per_input_byte", stack.per_input_byte}});
  }
  return json;
}

}  // namespace

std::string StepProfileText(const std::vector<StepProfile>& profiles, int32_t device) {
  const StepProfile* profile = Find(profiles, device);
  if (profile == nullptr) return "";
  std::string text =
      fmt::format("  floor      {:>9}   {}\n  variable   {:>9}   {}\n", Bytes(profile->floor),
                  FloorText(*profile), Bytes(profile->variable()), VariableText(*profile));
  text += KeptGradients(*profile);
  if (profile->inputs) text += GrowthText(*profile->inputs);
  return text;
}

Json StepProfileJson(const std::vector<StepProfile>& profiles, int32_t device) {
  const StepProfile* profile = Find(profiles, device);
  if (profile == nullptr) return nullptr;
  return {{"steps", profile->steps},
          {"floor_bytes", profile->floor},
          {"peak_bytes", profile->peak},
          {"variable_bytes", profile->variable()},
          {"floor_categories", CategoriesJson(profile->floor_uses)},
          {"peak_categories", CategoriesJson(profile->peak_uses)},
          {"inputs_known", profile->inputs_known},
          {"inputs", profile->inputs ? InputsJson(*profile->inputs) : Json(nullptr)}};
}

}  // namespace gmt::answers
