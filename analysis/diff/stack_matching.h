// analysis/diff/stack_matching.h
//
// Which stacks of one recording are which of another: of another version of the program, at other
// addresses, in other folders, or recorded by other means, which sees other frames.
//
//   tier 1  the same functions, files and lines
//   tier 2  the same functions in files of the same name: lines have moved
//   tier 3  the same, of the program's own and Python's frames alone, by their bare names
//   tier 4  the same own frame, of the same category; of a library's thread, which has none, the
//           library's innermost function
//
// From tier 2 on a file that was renamed (file_renames.h) goes by its old name.
// Each tier matches what is left of the tier before it, and only within a heap. Never are two matched
// with one: where several have the same key, those of the same bytes and count come first, then they
// are paired in the order of their lines.
//
// Thread safety: pure functions. Cost: of building a few strings for each stack.

#ifndef GMT_ANALYSIS_DIFF_STACK_MATCHING_H_
#define GMT_ANALYSIS_DIFF_STACK_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {

// A stack to be matched; frames innermost first.
struct StackToMatch {
  std::string heap;
  std::vector<FrameText> frames, forward_frames;
  Category category = Category::kUnknown;
  uint64_t bytes = 0, count = 0;
};

// Without arguments; of Python without the classes around it, which older interpreters and PyTorch's
// own recorder do not tell.
std::string BareFunction(const FrameText& frame);

struct StackMatch {
  size_t base = 0, changed = 0;  // indices
  int tier = 1;
};

// In no particular order. Stacks without frames match only those without frames.
std::vector<StackMatch> MatchStacks(const std::vector<StackToMatch>& base,
                                    const std::vector<StackToMatch>& changed);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_STACK_MATCHING_H_
