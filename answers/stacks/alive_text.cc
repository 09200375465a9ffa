#include "answers/stacks/alive_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "analysis/text.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Alive;
using analysis::AliveReason;
using Json = nlohmann::ordered_json;

constexpr size_t kReasonsShown = 3;

std::string SaverText(const Alive::Savers& savers) {
  const std::string name = savers.name.empty() ? "a node of the autograd graph" : savers.name;
  const std::string place = savers.own ? savers.own->Place() : "";
  return place.empty() ? name : fmt::format("{} ({})", name, place);
}

std::string SavedText(const Alive& alive) {
  std::string text(TextOf(alive.because.reason));
  if (alive.savers.empty()) return text;
  text += " by " + SaverText(alive.savers.front());
  const size_t others = alive.savers.size() - 1 + alive.more_savers;
  if (others > 0) text += fmt::format(" and {}", Plural(others, "other node"));
  return text;
}

Json OneJson(const Alive& alive) {
  Json nodes = Json::array();
  for (const Alive::Savers& savers : alive.savers) {
    nodes.push_back({{"name", savers.name.empty() ? Json() : Json(savers.name)},
                     {"label", LabelOf(savers.frames, {}, /*recomputed=*/false)},
                     {"frames", FramesJson(savers.frames)},
                     {"bytes", savers.bytes},
                     {"count", savers.count}});
  }
  return {{"reason", NameOf(alive.because.reason)},
          {"observed", alive.because.observed},
          {"nodes", std::move(nodes)},
          {"bytes", alive.bytes},
          {"count", alive.count}};
}

}  // namespace

std::string AliveText(const Alive& alive) {
  if (alive.because.reason == AliveReason::kSaved) return SavedText(alive);
  return std::string(TextOf(alive.because.reason));
}

std::string AliveText(const std::vector<Alive>& all) {
  const bool is_observed = std::any_of(all.begin(), all.end(),
                                       [](const Alive& alive) { return alive.because.observed; });
  if (!is_observed) return "";
  std::vector<std::string> parts;
  for (const Alive& alive : all) {
    std::string text = AliveText(alive);
    if (text.empty()) continue;
    if (parts.size() == kReasonsShown) {
      parts.push_back("...");
      break;
    }
    if (all.size() > 1) {
      text += fmt::format(": {} in {}", Bytes(alive.bytes), Plural(alive.count, "block"));
    }
    parts.push_back(std::move(text));
  }
  return absl::StrJoin(parts, "; ");
}

std::vector<std::string> SaverLines(const std::vector<Alive>& all) {
  std::vector<std::string> lines;
  for (const Alive& alive : all) {
    if (alive.savers.size() + alive.more_savers < 2) continue;
    for (const Alive::Savers& savers : alive.savers) {
      lines.push_back(
          fmt::format("{:>9} {:>7}  {}", Bytes(savers.bytes), savers.count, SaverText(savers)));
    }
    if (alive.more_savers > 0)
      lines.push_back(fmt::format("... and {}", Plural(alive.more_savers, "other node")));
  }
  return lines;
}

Json AliveJson(const std::vector<Alive>& all) {
  if (all.empty()) return nullptr;
  Json json = OneJson(all.front());
  json["others"] = Json::array();
  for (size_t i = 1; i < all.size(); ++i) json["others"].push_back(OneJson(all[i]));
  return json;
}

}  // namespace gmt::answers
