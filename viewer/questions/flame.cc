#include "viewer/questions/flame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "viewer/questions/flame_tree_builder.h"
#include "viewer/questions/scope_rows.h"

namespace gmt::viewer {
namespace {

using analysis::FrameText;
using analysis::RowId;

// A stack, that of the forward pass, which is 0 outside of backward passes, and the category.
using StacksAndCategory = std::tuple<uint32_t, uint32_t, analysis::Category>;
// Signed sums: blocks that went away count negatively.
using ByStack = std::map<StacksAndCategory, StackWeight>;

absl::StatusOr<ByStack> WeighStacks(Recording& recording, const Scope& scope) {
  if (absl::Status status = CheckScope(recording, scope); !status.ok()) return status;
  absl::StatusOr<RowFilter> filter = RowFilter::Make(recording, scope.filter);
  if (!filter.ok()) return filter.status();
  absl::flat_hash_map<StacksAndCategory, StackWeight> weights;
  ForEachRow(recording, scope, *filter, [&](RowId row, int sign) {
    StackWeight& weight = weights[{recording.rows().stack[row], recording.rows().forward_stack[row],
                                   recording.CategoryOf(row)}];
    weight.bytes += sign * static_cast<double>(recording.rows().size[row]);
    weight.blocks += sign;
    return true;
  });
  return ByStack(weights.begin(), weights.end());
}

// Separates the calls of a backward pass from those of the forward pass.
const FrameText* BackwardPass() {
  static const FrameText* const frame = [] {
    auto* made = new FrameText;
    made->function = "backward pass";
    made->role = symbols::FrameRole::kStart;
    return made;
  }();
  return frame;
}

// Returns the calls of a stack, innermost first.
analysis::FrameTextPointers CallsOf(FrameTable& frames, uint32_t stack, bool folded) {
  analysis::FrameTextPointers calls = frames.Frames(stack);
  if (folded) {
    const int leading = analysis::LeadingFrame(calls);
    int i = 0;
    std::erase_if(calls,
                  [&](const FrameText* frame) { return i++ != leading && frame->is_noise(); });
  }
  return calls;
}

// Returns the calls in the order in which the graph shows them.
analysis::FrameTextPointers PathOf(FrameTable& frames, uint32_t stack, uint32_t forward_stack,
                                   const FlameQuery& query) {
  analysis::FrameTextPointers path = CallsOf(frames, stack, query.folded);
  const analysis::FrameTextPointers forward = CallsOf(frames, forward_stack, query.folded);
  if (!forward.empty()) {
    path.push_back(BackwardPass());
    path.insert(path.end(), forward.begin(), forward.end());
  }
  if (!query.inverted) std::reverse(path.begin(), path.end());
  return path;
}

// Returns the calls of a stack as a graph without lines names them.
std::string CallsText(FrameTable& frames, uint32_t stack) {
  std::string text;
  for (const FrameText* frame : frames.Frames(stack))
    absl::StrAppend(&text, frame->Name(), "\t", frame->FileName(), "\n");
  return text;
}

// Keeps the stacks of `other` that have the same calls as those that `filter` names. Ids differ
// between files, and so do lines between versions of a program.
void KeepSameCalls(Recording& recording, const Filter& filter, Recording& other, ByStack* stacks) {
  const auto keep = [&](const std::optional<uint32_t>& named, auto id_of) {
    if (!named) return;
    const std::string calls = CallsText(recording.frames, *named);
    std::erase_if(*stacks, [&](const auto& entry) {
      return CallsText(other.frames, id_of(entry.first)) != calls;
    });
  };
  keep(filter.stack, [](const StacksAndCategory& key) { return std::get<0>(key); });
  keep(filter.forward_stack, [](const StacksAndCategory& key) { return std::get<1>(key); });
}

void AddStacks(Recording& recording, const FlameQuery& query, const ByStack& stacks, bool is_before,
               FlameTreeBuilder& builder) {
  for (const auto& [key, weight] : stacks) {
    const auto& [stack, forward_stack, category] = key;
    builder.Add(PathOf(recording.frames, stack, forward_stack, query), category, weight, is_before);
  }
}

}  // namespace

absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query,
                                    size_t max_nodes) {
  const absl::StatusOr<ByStack> stacks = WeighStacks(recording, query.scope);
  if (!stacks.ok()) return stacks.status();
  FlameTreeBuilder builder({.with_lines = true, .compares = false});
  AddStacks(recording, query, *stacks, false, builder);
  return std::move(builder).Build(max_nodes);
}

absl::StatusOr<FlameTree> MakeFlame(Recording& recording, const FlameQuery& query, Recording& other,
                                    uint32_t other_lane, uint32_t other_to, size_t max_nodes) {
  const absl::StatusOr<ByStack> stacks = WeighStacks(recording, query.scope);
  if (!stacks.ok()) return stacks.status();
  Scope before;
  before.lane = other_lane;
  before.to = other_to;
  before.filter = query.scope.filter;
  if (&other != &recording) before.filter.stack.reset(), before.filter.forward_stack.reset();
  absl::StatusOr<ByStack> others = WeighStacks(other, before);
  if (!others.ok()) return others.status();
  if (&other != &recording) KeepSameCalls(recording, query.scope.filter, other, &*others);
  FlameTreeBuilder builder({.with_lines = &other == &recording, .compares = true});
  AddStacks(recording, query, *stacks, false, builder);
  AddStacks(other, query, *others, true, builder);
  return std::move(builder).Build(max_nodes);
}

}  // namespace gmt::viewer
