#include "analysis/categories/alive_texts.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/categories/alive_by_category.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

constexpr size_t kNodesNamed = 2;

// The roles of a row in the order in which it got them.
struct Story {
  absl::InlinedVector<AliveReason, 2> reasons;
  absl::InlinedVector<GraphNode, 2> nodes;
  bool is_released = false;  // the last change removed its role

  void Add(const RoleChange& change) {
    is_released = change.roles == 0;
    if (is_released) return;
    const AliveReason reason = BecauseOf(change.roles, {}).reason;
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(reason);
    const GraphNode node{change.node, change.stack};
    const bool is_new = std::find(nodes.begin(), nodes.end(), node) == nodes.end();
    if ((node.name != 0 || node.stack != 0) && is_new) nodes.push_back(node);
  }
};

std::string NodeText(const Examination& examination, const GraphNode& node) {
  std::string text(examination.definitions().string(node.name));
  if (text.empty()) text = "a node of the autograd graph";
  const FrameText* own = examination.stacks().Own(node.stack);
  const std::string place = own == nullptr ? "" : own->Place();
  return place.empty() ? text : absl::StrCat(text, " (", place, ")");
}

std::string SavedText(const Examination& examination, const Story& story) {
  std::string text(TextOf(AliveReason::kSaved));
  if (story.nodes.empty()) return text;
  std::vector<std::string> nodes;
  for (size_t i = 0; i < std::min(story.nodes.size(), kNodesNamed); ++i)
    nodes.push_back(NodeText(examination, story.nodes[i]));
  absl::StrAppend(&text, " by ", absl::StrJoin(nodes, ", "));
  const size_t others = story.nodes.size() - nodes.size();
  if (others > 0) absl::StrAppend(&text, " and ", others, " other node", others == 1 ? "" : "s");
  return text;
}

std::string TextOfStory(const Examination& examination, const Story& story) {
  std::vector<std::string> parts;
  for (const AliveReason reason : story.reasons) {
    parts.push_back(reason == AliveReason::kSaved ? SavedText(examination, story)
                                                  : std::string(TextOf(reason)));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (story.is_released) absl::StrAppend(&text, "; then only the program held it");
  return text;
}

AliveReason ReasonIn(std::string_view text) {
  for (size_t i = 1; i < kAliveReasons; ++i) {
    const auto reason = static_cast<AliveReason>(i);
    if (text.substr(0, TextOf(reason).size()) == TextOf(reason)) return reason;
  }
  return AliveReason::kUnknown;
}

}  // namespace

AliveTexts::AliveTexts(const Examination& examination, const Categories& categories)
    : trace_(examination.trace()),
      categories_(categories),
      has_roles_(!examination.trace().role_changes.empty()) {
  Code("");
  for (size_t i = 0; i < kAliveReasons; ++i)
    by_reason_[i] = Code(std::string(TextOf(static_cast<AliveReason>(i))));
  absl::flat_hash_map<RowId, Story> stories;
  for (const RoleChange& change : trace_.role_changes) stories[change.row].Add(change);
  for (const auto& [row, story] : stories) {
    if (!story.reasons.empty()) with_role_[row] = Code(TextOfStory(examination, story));
  }
  for (const std::string& text : texts_) reasons_.push_back(ReasonIn(text));
}

uint32_t AliveTexts::Code(std::string text) {
  const auto [found, is_new] = codes_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(std::move(text));
  return found->second;
}

uint32_t AliveTexts::CodeOf(RowId row) const {
  const auto found = with_role_.find(row);
  if (found != with_role_.end()) return found->second;
  const AliveBecause because =
      BecauseOf(trace_.rows.Roles(row), WithoutRole(trace_, categories_, has_roles_, row));
  // Omits what the category alone says, because the category is shown next to it.
  return because.observed || because.reason == AliveReason::kOptimizerState ||
                 because.reason == AliveReason::kInput
             ? by_reason_[static_cast<size_t>(because.reason)]
             : 0;
}

}  // namespace gmt::analysis
