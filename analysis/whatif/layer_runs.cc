#include "analysis/whatif/layer_runs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/stacks/module_path.h"

namespace gmt::analysis {
namespace {

constexpr uint32_t kNoStack = 0;

// The paths of the modules of a stack, outermost first: "GPT", "GPT > Block", ...
struct StackModules {
  std::vector<std::string> paths, callers;
};

class LayerFinder {
 public:
  LayerFinder(const Examination& examination, const Categories& categories, const PhaseSpans& spans,
              int32_t device)
      : examination_(examination),
        trace_(examination.trace()),
        categories_(categories),
        spans_(spans),
        device_(device),
        counted_(examination.kinds()) {
    ForEachBirth(trace_, [&](Step step, RowId row) { Note(step, row); });
  }

  std::vector<Layers> Find(size_t most) && {
    std::vector<std::pair<uint64_t, std::string>> kinds;
    for (const auto& [path, bytes] : bytes_) kinds.emplace_back(bytes, path);
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Layers> found;
    for (const auto& [bytes, path] : kinds) {
      if (found.size() == most || bytes == 0) break;
      Layers layers = RunsOf(path);
      if (layers.most_in_a_pass > 1) found.push_back(std::move(layers));
    }
    return found;
  }

 private:
  struct Birth {
    Step step;
    RowId row;
    uint32_t pass;
    bool is_activation;
    const StackModules* modules;
  };

  // Births of forward passes, in modules.
  void Note(Step step, RowId row) {
    const Rows& rows = trace_.rows;
    if (rows.device[row] != device_ || !counted_.Counts(row)) return;
    while (pass_ < spans_.spans.size() && spans_.spans[pass_].end < step) ++pass_;
    if (pass_ < spans_.spans.size() && spans_.spans[pass_].begin < step) return;
    const StackModules& modules = ModulesOf(rows.stack[row]);
    if (modules.paths.empty()) return;
    const bool is_activation = categories_.Of(row).category == Category::kActivations;
    births_.push_back({step, row, static_cast<uint32_t>(pass_), is_activation, &modules});
    if (!is_activation) return;
    for (const std::string& path : modules.paths) bytes_[path] += rows.size[row];
  }

  const StackModules& ModulesOf(uint32_t stack) {
    const auto [found, is_new] = modules_.try_emplace(stack);
    if (!is_new) return *found->second;
    found->second = std::make_unique<StackModules>();
    std::string path;
    for (const ModuleCall& call : ModuleCalls(examination_.stacks().Frames(stack))) {
      absl::StrAppend(&path, path.empty() ? "" : " > ", call.module);
      found->second->paths.push_back(path);
      found->second->callers.push_back(call.caller);
    }
    return *found->second;
  }

  // A layer that allocates itself after its inner modules ends with its last own request.
  // Otherwise it begins with the request of its first one.
  Layers RunsOf(const std::string& path) {
    Layers layers;
    layers.path = path;
    const size_t depth = static_cast<size_t>(std::count(path.begin(), path.end(), '>'));
    const auto is_inside = [&](const Birth& birth) {
      return birth.modules->paths.size() > depth && birth.modules->paths[depth] == path;
    };
    uint32_t first = kNoStack, last_own = kNoStack, counted_pass = UINT32_MAX;
    for (const Birth& birth : births_) {
      if (!is_inside(birth)) continue;
      if (first == kNoStack) {
        first = trace_.rows.stack[birth.row];
        counted_pass = birth.pass;
        layers.caller = birth.modules->callers[depth];
      }
      if (birth.pass == counted_pass && birth.modules->paths.size() == depth + 1)
        last_own = trace_.rows.stack[birth.row];
    }
    const bool by_end = last_own != kNoStack && last_own != first;
    bool is_open = false;
    uint32_t pass = UINT32_MAX;
    size_t in_pass = 0;
    for (const Birth& birth : births_) {
      if (!is_inside(birth)) continue;
      const uint32_t stack = trace_.rows.stack[birth.row];
      if (birth.pass != pass) pass = birth.pass, in_pass = 0, is_open = false;
      if (!is_open || (!by_end && stack == first)) {
        if (in_pass > 0) layers.runs.back().is_last_of_pass = false;
        layers.runs.push_back({birth.step, birth.step, {}, true});
        layers.most_in_a_pass = std::max(layers.most_in_a_pass, ++in_pass);
        is_open = true;
      }
      layers.runs.back().end = birth.step;
      if (birth.is_activation) layers.runs.back().activations.push_back(birth.row);
      if (by_end && stack == last_own) is_open = false;
    }
    return layers;
  }

  const Examination& examination_;
  const Trace& trace_;
  const Categories& categories_;
  const PhaseSpans& spans_;
  const int32_t device_;
  const Births counted_;
  size_t pass_ = 0;  // index of the span that ends at or after the current birth
  std::vector<Birth> births_;
  std::map<std::string, uint64_t> bytes_;  // bytes of activations, by path
  absl::flat_hash_map<uint32_t, std::unique_ptr<StackModules>> modules_;
};

}  // namespace

std::vector<Layers> FindLayers(const Examination& examination, const Categories& categories,
                               const PhaseSpans& spans, int32_t device, size_t most) {
  return LayerFinder(examination, categories, spans, device).Find(most);
}

}  // namespace gmt::analysis
