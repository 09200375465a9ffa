// answers/stacks/stack_text.h
//
// A stack for people: the program's own line, the part of a library that it called and what was called
// there, then a few callers; or every frame.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_STACK_TEXT_H_
#define GMT_ANSWERS_STACKS_STACK_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::answers {

// Of the stack of a row: StackLine and a few callers, or every frame.
enum class FramesShown { kFolded, kRaw };

// Columns that a line of text has at least, however narrow the terminal.
inline constexpr size_t kMinTextWidth = 30;

// "Net.forward (model.py:88)", in about `width` columns.
std::string FrameLine(const analysis::FrameText& frame, size_t width);

// Where the program did it, in which part of a library, and what was called there, in one line: "main
// (train.py:20) > MLP.forward (gpt.py:88) > at::linear"; without what was called where there is no
// room for it. "no stack was recorded" without frames.
std::string StackLine(const std::vector<analysis::FrameText>& frames, size_t width);

// StackLine, or the innermost frame, then the callers.
std::vector<std::string> StackLines(const std::vector<analysis::FrameText>& frames,
                                    FramesShown shown, size_t width);

// The modules of a layer, the outermost left out if they do not fit: "... > Block > Linear (gpt.py:45)".
std::string LayerText(const std::string& layer, size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_STACK_TEXT_H_
