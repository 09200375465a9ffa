// answers/frag/frag_text.h
//
// Fragmentation (analysis/fragmentation/fragmentation.h) for people and for programs.
//
// In the text, the rows of the split add up to what is free; each names what gives it back.
//
// Thread safety: one thread at a time: stacks are described as they are asked for.

#ifndef GMT_ANSWERS_FRAG_FRAG_TEXT_H_
#define GMT_ANSWERS_FRAG_FRAG_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/stacks/source_line.h"
#include "answers/terminal.h"

namespace gmt::answers {

// `top`: lines of code that pin. Of several devices the one with most free memory is shown in full.
std::string FragText(const std::vector<analysis::Fragmentation>& found,
                     const analysis::Examination& examination, analysis::SourceLines& sources,
                     const std::string& file, size_t top, const Terminal& terminal);

// One object, all keys in the contract of the command line.
std::string FragJson(const std::vector<analysis::Fragmentation>& found,
                     const analysis::Examination& examination, const std::string& file, size_t top);

// "stack/7", "stack/7+9" of memory born in a backward pass; "" where no stack is known.
std::string StackId(uint32_t stack, uint32_t forward_stack);

// The blocks that together pin nine tenths of what is pinned at all, the most pinning ones first.
struct MainPins {
  uint64_t blocks = 0, block_bytes = 0, pinned_bytes = 0;
};
MainPins MainPinsOf(const analysis::Trace& trace, const std::vector<analysis::Pin>& pins);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_FRAG_FRAG_TEXT_H_
