#include "analysis/categories/stack_hints.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

// Python 3.11 and later report "Net.forward".
bool IsMethod(const FrameText& frame, std::string_view name) {
  if (!frame.is_python() || !frame.function.ends_with(name)) return false;
  const size_t before = frame.function.size() - name.size();
  return before == 0 || frame.function[before - 1] == '.';
}

}  // namespace

StackHints::StackHints(const format::Definitions& definitions, const CategoryRules& rules)
    : definitions_(definitions),
      rules_(rules),
      calls_module_(definitions.stack_count() + size_t{1}, kNotAsked) {}

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
    found.is_python |= text.is_python();
    if (IsMethod(text, "forward")) found.forward_file = NumberOf(text.file);
    if (IsMethod(text, "__init__")) found.init_file = NumberOf(text.file);
  }
  return found;
}

uint32_t StackHints::NumberOf(const std::string& file) {
  return file_numbers_.try_emplace(file, file_numbers_.size() + 1).first->second;
}

const StackHints::Known& StackHints::Of(uint32_t stack) {
  const auto [known, is_new] = stacks_.try_emplace(stack);
  if (!is_new) return known->second;
  Known& found = known->second;
  uint32_t called = 0;  // file of the frame before, if that is a `forward`
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const KnownFrame& of = OfFrame(frame);
    found.calls_module |= of.calls_module;
    if (of.calls_module && called != 0) module_files_.insert(called);
    if (of.is_python) called = of.forward_file;
    if (of.init_file != 0) found.init_files.push_back(of.init_file);
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
  if (stack >= calls_module_.size()) return Of(stack).calls_module;  // never defined
  uint8_t& known = calls_module_[stack];
  if (known == kNotAsked) known = Of(stack).calls_module ? 1 : 0;
  return known == 1;
}

bool StackHints::CreatesModule(uint32_t stack) {
  if (stack == 0) return false;
  const Known& known = Of(stack);
  const auto of_modules =
      std::count_if(known.init_files.begin(), known.init_files.end(),
                    [this](uint32_t file) { return module_files_.contains(file); });
  return !known.calls_module && of_modules >= 2;
}

std::string StackHints::FrameName(uint32_t frame) const {
  const std::vector<FrameText> texts = DescribeFrame(definitions_, frame);
  if (texts.empty()) return "";
  const FrameText& text = texts.front();
  if (!text.is_python()) return text.Name().substr(0, text.Name().find('('));
  return text.file.empty() ? text.Name() : absl::StrCat(text.Name(), " (", text.FileName(), ")");
}

}  // namespace gmt::analysis
