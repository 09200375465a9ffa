#include "analysis/categories/stack_hints.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {

StackHints::StackHints(const format::Definitions& definitions, const CategoryRules& rules)
    : definitions_(definitions), rules_(rules) {}

const StackHints::KnownFrame& StackHints::OfFrame(uint32_t frame) {
  const auto [known, is_new] = frames_.try_emplace(frame);
  if (!is_new) return known->second;
  KnownFrame& found = known->second;
  for (const FrameText& text : DescribeFrame(definitions_, frame)) {
    const symbols::FrameView view{text.function, text.module, text.file, text.language};
    for (uint32_t i = 0; i < rules_.rules().size(); ++i) {
      if (rules_.rules()[i].pattern.Fits(view)) found.rules.push_back(i);
    }
    found.calls_module |= IsModuleCall(text);
  }
  return found;
}

const StackHints::Known& StackHints::Of(uint32_t stack) {
  const auto [known, is_new] = stacks_.try_emplace(stack);
  if (!is_new) return known->second;
  Known& found = known->second;
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const KnownFrame& of = OfFrame(frame);
    found.calls_module |= of.calls_module;
    for (const uint32_t rule : of.rules) found.rules.emplace_back(rule, frame);
  }
  // For equal rules, the innermost frame stays first.
  std::stable_sort(found.rules.begin(), found.rules.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto last = std::unique(found.rules.begin(), found.rules.end(),
                                [](const auto& a, const auto& b) { return a.first == b.first; });
  found.rules.erase(last, found.rules.end());
  return found;
}

StackHints::Hint StackHints::Find(uint32_t stack, Lifespan life, Born born) {
  if (stack == 0) return {};
  for (const auto& [index, frame] : Of(stack).rules) {
    const CategoryRule& rule = rules_.rules()[index];
    if (rule.Fits(life, born)) return {&rule, frame};
  }
  return {};
}

bool StackHints::CallsModule(uint32_t stack) {
  if (stack == 0) return false;
  if (stack != last_stack_) {
    last_calls_module_ = Of(stack).calls_module;
    last_stack_ = stack;
  }
  return last_calls_module_;
}

std::string StackHints::FrameName(uint32_t frame) const {
  const std::vector<FrameText> texts = DescribeFrame(definitions_, frame);
  if (texts.empty()) return "";
  const FrameText& text = texts.front();
  if (!text.is_python()) return text.Name().substr(0, text.Name().find('('));
  return text.file.empty() ? text.Name() : absl::StrCat(text.Name(), " (", text.FileName(), ")");
}

}  // namespace gmt::analysis
