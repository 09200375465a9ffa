#include "viewer/questions/flame_tree_builder.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "viewer/index/names.h"
#include "viewer/questions/frame_table.h"

namespace gmt::viewer {
namespace {

using analysis::FrameText;

constexpr uint32_t kNone = UINT32_MAX;

// Replaces tabs: a name is three fields separated by tabs, which must not contain any.
std::string WithoutTabs(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

FlameTreeBuilder::FlameTreeBuilder(Style style) : style_(style) {
  ChildOf(kNone, Intern("all\t\tfolded"));
}

uint32_t FlameTreeBuilder::Intern(std::string name) {
  const auto [found, is_new] =
      by_name_.try_emplace(std::move(name), static_cast<uint32_t>(tree_.names.size()));
  if (is_new) tree_.names.push_back(found->first);
  return found->second;
}

uint32_t FlameTreeBuilder::NameOf(const FrameText* frame) {
  const auto known = by_frame_.find(frame);
  if (known != by_frame_.end()) return known->second;
  const std::string place = style_.with_lines ? frame->Place() : frame->FileName();
  const uint32_t name = Intern(absl::StrCat(WithoutTabs(frame->Name()), "\t", WithoutTabs(place),
                                            "\t", TextOf(KindOf(*frame))));
  by_frame_[frame] = name;
  return name;
}

uint32_t FlameTreeBuilder::ChildOf(uint32_t parent, uint32_t name) {
  const auto next = static_cast<uint32_t>(tree_.parent.size());
  const auto [found, is_new] = children_.try_emplace({parent, name}, next);
  if (!is_new) return found->second;
  tree_.parent.push_back(parent == kNone ? 0 : parent);
  tree_.name.push_back(name);
  tree_.bytes.push_back(0);
  tree_.blocks.push_back(0);
  if (style_.compares) {
    tree_.before.push_back(0);
  } else {
    by_category_.push_back({});
  }
  return next;
}

void FlameTreeBuilder::Add(const analysis::FrameTextPointers& path, analysis::Category category,
                           const StackWeight& weight, bool is_before) {
  const auto count = [&](uint32_t node) {
    if (is_before) {
      tree_.before[node] += weight.bytes;
    } else {
      tree_.bytes[node] += weight.bytes;
      tree_.blocks[node] += weight.blocks;
    }
    if (!style_.compares) by_category_[node][static_cast<size_t>(category)] += weight.bytes;
  };
  uint32_t node = 0;
  count(node);
  for (const FrameText* frame : path) {
    node = ChildOf(node, NameOf(frame));
    count(node);
  }
  if (path.empty()) count(ChildOf(0, Intern(std::string(kUnknownName) + "\t\tfolded")));
}

FlameTree FlameTreeBuilder::Build(size_t max_nodes) && {
  if (tree_.parent.size() > max_nodes) Prune(max_nodes);
  for (const BytesOfCategories& bytes : by_category_) {
    auto most = analysis::Category::kUnknown;  // also if nothing grew
    double most_bytes = 0;
    for (size_t c = 0; c < bytes.size(); ++c) {
      if (bytes[c] > most_bytes) most = static_cast<analysis::Category>(c), most_bytes = bytes[c];
    }
    tree_.category.push_back(static_cast<uint8_t>(most));
    tree_.category_bytes.push_back(most_bytes);
  }
  tree_.total = tree_.bytes[0];
  return std::move(tree_);
}

// Returns the largest amount in each node or below it, so that a parent never has less than its
// children.
std::vector<double> FlameTreeBuilder::Importance() const {
  std::vector<double> importance(tree_.parent.size());
  for (size_t i = importance.size(); i-- > 0;) {
    const double before = style_.compares ? std::abs(tree_.before[i]) : 0;
    importance[i] = std::max({importance[i], std::abs(tree_.bytes[i]), before});
    if (i == 0) break;
    double& parent = importance[tree_.parent[i]];
    parent = std::max(parent, importance[i]);
  }
  return importance;
}

// Keeps the most important nodes, half of `max_nodes`, which form a tree with the same root, and at
// most one additional node for each of them.
void FlameTreeBuilder::Prune(size_t max_nodes) {
  const std::vector<double> importance = Importance();
  std::vector<uint32_t> order(importance.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  // Parents precede their children, even if equally important.
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return importance[a] > importance[b]; });
  std::vector<bool> kept(importance.size(), false);
  for (size_t i = 0; i < std::max<size_t>(1, max_nodes / 2); ++i) kept[order[i]] = true;

  const FlameTree all = std::move(tree_);
  const std::vector<BytesOfCategories> categories_of_all = std::move(by_category_);
  tree_ = {};
  by_category_.clear();
  children_.clear();
  by_name_.clear();
  std::vector<uint32_t> place(importance.size(), kNone);
  for (uint32_t i = 0; i < all.parent.size(); ++i) {
    const uint32_t parent = i == 0 ? kNone : place[all.parent[i]];
    const bool is_below_a_smaller_one = i != 0 && !kept[all.parent[i]];
    if (is_below_a_smaller_one) continue;
    const uint32_t node =
        ChildOf(parent, Intern(kept[i] ? all.names[all.name[i]] : "smaller\t\tfolded"));
    if (kept[i]) place[i] = node;
    tree_.bytes[node] += all.bytes[i];
    tree_.blocks[node] += all.blocks[i];
    if (style_.compares) {
      tree_.before[node] += all.before[i];
      continue;
    }
    for (size_t c = 0; c < analysis::kCategories; ++c)
      by_category_[node][c] += categories_of_all[i][c];
  }
}

}  // namespace gmt::viewer
