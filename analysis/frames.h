// analysis/frames.h
//
// Stacks as people read them: inlined calls expanded, names and lines where they are known, module
// + offset where not.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAMES_H_
#define GMT_ANALYSIS_FRAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/definitions.h"

namespace gmt::analysis {

struct FrameText {
  std::string function;   // empty: not known
  std::string file;       // empty: not known
  uint32_t line = 0;      // 0: not known
  std::string language;   // "c++", "python", or what the log said
  std::string module;     // path; empty: not known
  uint64_t address = 0;   // of a native frame, in its module; in memory where no module is known
  bool is_noise = false;  // symbols/folding.h

  // The function, else "libfoo.so+0x1a2b", else "0x7f0012345678", else "?".
  std::string Name() const;
  // "model.py:88", "model.py", or "": the file without its directories.
  std::string Place() const;
};

// Innermost first.
std::vector<FrameText> DescribeStack(const format::Definitions& definitions, uint32_t stack);

// The frame that stands for the stack: the innermost that is no noise, else the innermost. -1 for
// no frames.
int LeadingFrame(const std::vector<FrameText>& frames);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAMES_H_
