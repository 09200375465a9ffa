#include "analysis/stacks/stack_texts.h"

namespace gmt::analysis {

const StackTexts::Described& StackTexts::Describe(uint32_t frame) {
  const auto [it, is_new] = frames_.try_emplace(frame);
  Described& described = it->second;
  if (!is_new) return described;
  described.texts = DescribeFrame(definitions_, frame, rules_);
  described.library = KnownLibraryOf(described.texts);
  return described;
}

const StackTexts::Text& StackTexts::Of(uint32_t stack) {
  const auto [it, is_new] = texts_.try_emplace(stack);
  Text& text = it->second;
  if (!is_new) return text;
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const Described& described = Describe(frame);
    text.frames.insert(text.frames.end(), described.texts.begin(), described.texts.end());
  }
  text.own = OwnFrame(text.frames);
  text.leading = LeadingFrame(text.frames);
  text.in_library = LibraryFrame(text.frames);
  return text;
}

const std::string& StackTexts::Library(uint32_t stack) {
  static const auto* const none = new std::string;
  static const auto* const program = new std::string(kTheProgram);
  const auto [it, is_new] = libraries_.try_emplace(stack, none);
  if (!is_new) return *it->second;
  for (const uint32_t frame : definitions_.StackFrames(stack)) {
    const Described& described = Describe(frame);
    if (!described.library.empty()) {
      it->second = &described.library;
      break;
    }
    if (!described.texts.empty()) it->second = program;
  }
  return *it->second;
}

const FrameText* StackTexts::Own(uint32_t stack, uint32_t forward_stack) {
  const FrameText* own = Own(stack);
  if (forward_stack == 0) return own;
  const bool is_programs =
      own != nullptr && own->is_python() && own->role == symbols::FrameRole::kOwn;
  return is_programs ? own : Own(forward_stack);
}

}  // namespace gmt::analysis
