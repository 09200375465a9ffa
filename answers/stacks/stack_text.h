// answers/stacks/stack_text.h
//
// A stack as text: the program's own line, the part of a library that it called, and what was
// called there, then a few callers; or every frame.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_STACK_TEXT_H_
#define GMT_ANSWERS_STACKS_STACK_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::answers {

// Whether a row shows StackLine and a few callers, or every frame.
enum class FramesShown { kFolded, kRaw };

// The minimum number of columns for a line of text, however narrow the terminal is.
inline constexpr size_t kMinTextWidth = 30;

// Returns "Net.forward (model.py:88)", in about `width` columns.
std::string FrameLine(const analysis::FrameText& frame, size_t width);

// Returns one line with the program's own frame, the part of a library that it called, and what was
// called there: "main (train.py:20) > MLP.forward (gpt.py:88) > at::linear". Leaves out the last if
// there is no room for it. Returns "no stack was recorded" without frames.
std::string StackLine(const std::vector<analysis::FrameText>& frames, size_t width);

// The same from OwnFrame, LibraryFrame (null: none) and LeadingFrame, which may be one of them.
std::string StackLine(const analysis::FrameText& own, const analysis::FrameText* library,
                      const analysis::FrameText& called, size_t width);

// Returns "stack/7", or "stack/7+9" for memory of a backward pass, or "" if no stack is known.
std::string StackId(uint32_t stack, uint32_t forward_stack);

// The columns of a stack's line that is not written for a terminal: in JSON and on the page.
inline constexpr size_t kStackLabelWidth = 120;

// What precedes the line of a stack that recomputes memory.
inline constexpr std::string_view kRecomputed = "recomputed: ";
// Returns what precedes the line of the forward pass for memory of a backward pass: "backward of ".
std::string_view BackwardOf(bool recomputed);
// Returns the line of memory in about kStackLabelWidth columns: that of its stack, or with
// `forward_frames`, for memory of a backward pass, "backward of " and that of its forward pass.
std::string LabelOf(const std::vector<analysis::FrameText>& frames,
                    const std::vector<analysis::FrameText>& forward_frames, bool recomputed);

// Returns StackLine or the innermost frame, then the callers.
std::vector<std::string> StackLines(const std::vector<analysis::FrameText>& frames,
                                    FramesShown shown, size_t width);

// Returns the modules of a layer, without the outermost if they do not fit: "... > Block > Linear
// (gpt.py:45)".
std::string LayerText(const std::string& layer, size_t width);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_STACK_TEXT_H_
