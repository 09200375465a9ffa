// analysis/diff/stack_matching.h
//
// Matches the stacks of two recordings. They may be of different versions of the program, with
// other addresses and directories, or made by different recorders, which see different frames.
//
//   tier 1  the same functions, files and lines
//   tier 2  the same functions in files of the same name: lines have moved
//   tier 3  the same, comparing only the program's own and Python frames, by their bare names
//   tier 4  the same own frame and the same category; for a library's thread, which has no own
//           frame, the library's innermost function
//
// From tier 2 on, a renamed file (file_renames.h) is compared under its old name. Each tier matches
// what earlier tiers left, and only within a heap. Matches are one to one: of several stacks with
// the same key, those of equal bytes and count are paired first, the others in the order of their
// lines.
//
// Thread safety: pure functions. Cost: building a few strings for each stack.

#ifndef GMT_ANALYSIS_DIFF_STACK_MATCHING_H_
#define GMT_ANALYSIS_DIFF_STACK_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {

// A stack to match; frames innermost first.
struct StackToMatch {
  std::string heap;
  std::vector<FrameText> frames, forward_frames;
  Category category = Category::kUnknown;
  uint64_t bytes = 0, count = 0;
};

// The function without arguments; for Python without the enclosing classes, which older
// interpreters and PyTorch's own recorder do not report.
std::string BareFunction(const FrameText& frame);

struct StackMatch {
  size_t base = 0, changed = 0;  // indices
  int tier = 1;
};

// In no particular order. Stacks without frames match only stacks without frames.
std::vector<StackMatch> MatchStacks(const std::vector<StackToMatch>& base,
                                    const std::vector<StackToMatch>& changed);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_STACK_MATCHING_H_
