#include "cli/report_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/report_categories.h"
#include "cli/text.h"

namespace gmt::cli {
namespace {

using analysis::CategoryUse;
using analysis::Growth;
using analysis::InputGrowth;
using analysis::StepProfile;
using Json = nlohmann::ordered_json;

constexpr size_t kUsesInLine = 3;
constexpr size_t kStacksInJson = 50;

const StepProfile* Find(const std::vector<StepProfile>& profiles, int32_t device) {
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const StepProfile& p) { return p.device == device; });
  return found == profiles.end() ? nullptr : &*found;
}

std::string Uses(std::vector<CategoryUse> uses) {
  std::string text;
  for (size_t i = 0; i < uses.size() && i < kUsesInLine; ++i) {
    if (uses[i].bytes == 0) break;
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", analysis::TextOf(uses[i].category),
                        Bytes(uses[i].bytes));
  }
  return text;
}

// What the peak has of each category that the floor has not.
std::vector<CategoryUse> Added(const StepProfile& profile) {
  std::vector<CategoryUse> added;
  for (CategoryUse use : profile.peak_uses) {
    for (const CategoryUse& floor : profile.floor_uses) {
      if (floor.category == use.category) use.bytes -= std::min(use.bytes, floor.bytes);
    }
    added.push_back(use);
  }
  std::stable_sort(added.begin(), added.end(),
                   [](const CategoryUse& a, const CategoryUse& b) { return a.bytes > b.bytes; });
  return added;
}

// Gradients that no step is without live through its forward pass.
std::string KeptGradients(const StepProfile& profile) {
  for (const CategoryUse& use : profile.floor_uses) {
    if (use.category != analysis::Category::kGradients || use.bytes == 0) continue;
    return fmt::format(
        "  gradients  {:>9}   live through the forward pass: "
        "optimizer.zero_grad(set_to_none=True) before it frees them\n",
        Bytes(use.bytes));
  }
  return "";
}

std::string GrowthText(const InputGrowth& inputs) {
  std::string text = fmt::format("  inputs of {} to {} a step; of what a step allocates\n",
                                 Bytes(inputs.least), Bytes(inputs.most));
  text += fmt::format("    {:>9} grow with them", Bytes(inputs.linear_bytes));
  if (inputs.quadratic_bytes > 0) {
    text += fmt::format(", {} with their square", Bytes(inputs.quadratic_bytes));
  }
  text += fmt::format(", {} do not", Bytes(inputs.constant_bytes));
  if (inputs.unclear_bytes > 0) text += fmt::format(", {} unclear", Bytes(inputs.unclear_bytes));
  text += "\n";
  if (inputs.peak_with_twice > 0) {
    text += fmt::format("    {:>9} would be the peak, about, with twice the average input\n",
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
                  Uses(profile->floor_uses), Bytes(profile->variable()), Uses(Added(*profile)));
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

}  // namespace gmt::cli
