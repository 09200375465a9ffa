#include "analysis/stack_texts.h"

namespace gmt::analysis {

const StackTexts::Text& StackTexts::Of(uint32_t stack) {
  const auto [it, is_new] = texts_.try_emplace(stack);
  Text& text = it->second;
  if (!is_new) return text;
  text.frames = DescribeStack(definitions_, stack, rules_);
  text.own = OwnFrame(text.frames);
  text.leading = LeadingFrame(text.frames);
  text.library = LibraryOf(text.frames);
  return text;
}

}  // namespace gmt::analysis
